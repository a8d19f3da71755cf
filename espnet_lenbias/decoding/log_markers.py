"""Log lines that are counted: by recipes, and at the end of a run.

ESPnet's recipes compute the real-time factor from the lines ``speech length: n``, which
mark the start of an utterance, and ``best hypo: ...``, which mark its end, and require
as many of one as of the other. An attempt that fails must leave neither.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from espnet_lenbias.search.log_best import UTTERANCE

_START = "speech length"
_END = "best hypo"

# Attributes of the records that warn of audio, of another sampling rate and of another
# scale than the model's, and longer than its window -> what is said of their number at
# the end.
AUDIO_WARNINGS = {
    "espnet_lenbias_rate": "have another sampling rate than the model's, so their texts "
    "are not to be trusted: resample the audio and decode into another folder",
    "espnet_lenbias_scale": "may have samples on another scale than those that the model "
    "was trained on, so their texts are not to be trusted: see the warnings above",
    "espnet_lenbias_window": "are longer than what the model hears at once, so their "
    "texts lack the rest: cut the audio into pieces and decode into another folder, or "
    "decode it in Python with decode_long, which s2t (OWSM) has",
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


class AudioWarnings(logging.Handler):
    """Counts the warnings of audio, those of workers too."""

    def __init__(self) -> None:
        super().__init__()
        self.counts = dict.fromkeys(AUDIO_WARNINGS, 0)

    def emit(self, record: logging.LogRecord) -> None:
        """Count a record."""
        for kind in self.counts:
            self.counts[kind] += hasattr(record, kind)

    def summary(self, total: int) -> list[str]:
        """Return a line for each kind that there was, of so many utterances."""
        return [
            f"{n} of {total} utterances {AUDIO_WARNINGS[kind]}"
            for kind, n in self.counts.items()
            if n
        ]


@contextmanager
def audio_warnings() -> Iterator[AudioWarnings]:
    """Count, within the context, the warnings of audio."""
    counter = AudioWarnings()
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
