"""Log lines that are counted: by recipes, and at the end of a run.

ESPnet's recipes compute the real-time factor from the lines ``speech length: n``, which
mark the start of an utterance, and ``best hypo: ...``, which mark its end, and require
as many of one as of the other. An attempt that fails must leave neither.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from espnet_lenbias.search.log_best import LIMIT, UTTERANCE

_START = "speech length"
_END = "best hypo"

# Attributes of the records that warn of audio: of another sampling rate, and of another
# scale, than the model's; longer than its window; where it has none, far longer than what
# it was trained on; of several channels; of a kind of file that may be cut off.
RATE = "espnet_lenbias_rate"
SCALE = "espnet_lenbias_scale"
WINDOW = "espnet_lenbias_window"
LENGTH = "espnet_lenbias_length"
CHANNELS = "espnet_lenbias_channels"
END = "espnet_lenbias_end"

# Such an attribute -> what is said at the end of the number of its records.
_AUDIO_WARNINGS = {
    RATE: "have another sampling rate than the model's, so their texts "
    "are not to be trusted: resample the audio and decode into another folder",
    SCALE: "may have samples on another scale than those that the model "
    "was trained on, so their texts are not to be trusted: see the warnings above",
    WINDOW: "are longer than what the model hears at once, so their "
    "texts lack the rest: cut the audio with `espnet-lenbias segment` and decode the "
    "pieces with --segments into another folder (of `transcribe`, give a smaller "
    "--longest), or decode it in Python with decode_long, which s2t (OWSM) has",
    LENGTH: "are far longer than what models are trained on, so their "
    "texts are not to be trusted: cut them with `espnet-lenbias segment`, and decode the "
    "pieces with --segments into another folder; of `transcribe`, give a smaller --longest",
    CHANNELS: "have several channels, of which the first was heard",
    END: "are in files of which it cannot be told whether they are whole: see the warnings "
    "above",
}

# Likewise of the records that warn of an output.
_OUTPUT_WARNINGS = {
    LIMIT: "have texts that the length limit may have cut: see the warnings above, and "
    "decode into another folder with a larger maxlenratio",
}


@contextmanager
def paired_markers(keys: Sequence[str]) -> Iterator[None]:
    """Hold log records back until an attempt is over, then pass on what should stay.

    Args:
        keys: Of the utterances of the attempt, which warnings of their outputs get.
    """
    root = logging.getLogger()
    handlers = root.handlers[:]
    held = _Holder()
    root.handlers[:] = [held]
    failed = True
    try:
        yield
        failed = False
    finally:
        root.handlers[:] = handlers
        for record in _kept(held.records, failed):
            _name_utterance(record, keys)
            for handler in handlers:
                if record.levelno >= handler.level:
                    handler.handle(record)


class UtteranceWarnings(logging.Handler):
    """Counts the utterances with a warning of some kind, those of workers too."""

    _kinds = _AUDIO_WARNINGS | _OUTPUT_WARNINGS

    def __init__(self) -> None:
        super().__init__()
        # Utterances can have several such warnings: of several speakers, of the source
        # text.
        self._found: dict[str, set[str]] = {kind: set() for kind in self._kinds}

    def emit(self, record: logging.LogRecord) -> None:
        """Count the utterance of a record, whose message begins with its key."""
        for kind, found in self._found.items():
            if hasattr(record, kind):
                found.add(record.getMessage().partition(": ")[0])

    def summary(self, total: int) -> list[str]:
        """Return a line for each kind that there was, of so many utterances."""
        return [
            f"{len(found)} of {total} utterances {self._kinds[kind]}"
            for kind, found in self._found.items()
            if found
        ]


@contextmanager
def utterance_warnings() -> Iterator[UtteranceWarnings]:
    """Count, within the context, the warnings of utterances."""
    counter = UtteranceWarnings()
    logging.getLogger().addHandler(counter)
    try:
        yield counter
    finally:
        logging.getLogger().removeHandler(counter)


class _Holder(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def _name_utterance(record: logging.LogRecord, keys: Sequence[str]) -> None:
    """Put the key in the place of the number that a search knows an utterance by."""
    if hasattr(record, UTTERANCE) and isinstance(record.args, tuple):
        # alone it can have several searches, such as those of several speakers
        utt = 0 if len(keys) == 1 else getattr(record, UTTERANCE)
        if utt is not None:
            record.args = (f"Utterance {keys[utt]}: ", *record.args[1:])


def _kept(
    records: Sequence[logging.LogRecord], failed: bool
) -> list[logging.LogRecord]:
    """Drop the start markers that no end marker answers; on failure, all markers."""
    messages = [record.getMessage() for record in records]
    if failed:
        is_kept = [not message.startswith((_START, _END)) for message in messages]
    else:
        is_kept = paired(messages)
    return [record for record, kept in zip(records, is_kept) if kept]


def paired(messages: Sequence[str]) -> list[bool]:
    """Tell which messages stay: all but start markers that no end marker answers.

    A batch that ran out of memory has been started again inside the attempt, in halves:
    going backwards, each end marker belongs to the nearest start marker before it.
    """
    is_kept = []
    unanswered = 0
    for message in reversed(messages):
        is_start = message.startswith(_START)
        is_kept.append(not is_start or unanswered > 0)
        unanswered += message.startswith(_END)
        unanswered -= is_start and unanswered > 0
    return is_kept[::-1]
