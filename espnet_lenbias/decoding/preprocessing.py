"""ESPnet's preprocessing, behind a look at what goes into it.

That of a model with a window (S2T) fills audio up to it, or cuts it, without a word:
afterwards an utterance without audio looks like any other.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from espnet_lenbias.errors import AudioError, OptionError
from espnet_lenbias.inference.model_loading import said
from espnet_lenbias.inference.whisper import whisper_ready
from espnet_lenbias.options.audio_files import WHISPER_WINDOW
from espnet_lenbias.options.espnet_tools import Tool

Preprocess = Callable[[str, dict[str, Any]], dict[str, np.ndarray]]


class CheckedPreprocessing:
    """Preprocesses an utterance, and notes what is left out of it.

    Attributes:
        left_out: What the window leaves out of the last utterance; "" if nothing.

    """

    def __init__(
        self,
        preprocess: Preprocess,
        needed: Sequence[str],
        conf: Mapping[str, Any],
        window: int | None = None,
    ):
        """Look at what goes into a preprocessing.

        Args:
            preprocess: ESPnet's.
            needed: The names of the data that the task cannot do without.
            conf: The ``preprocessor_conf`` of the model.
            window: The samples that a model hears, where its preprocessing does not
                know of them.
        """
        self.preprocess = preprocess
        self.needed = needed
        self.rate = conf.get("fs", 16000)
        # samples that the model hears; None: any number
        self.window: int | None = getattr(preprocess, "speech_length", window)
        self.left_out = ""

    def __call__(self, uid: str, data: dict[str, Any]) -> dict[str, np.ndarray]:
        """Preprocess the data of an utterance.

        Raises:
            ValueError: There is nothing in one that is needed.
        """
        self.left_out = ""
        for name in self.needed:
            if name in data:
                check_not_empty(name, data[name])
        if self.window is not None and "speech" in data:
            self._note_cut(len(data["speech"]), self.window)
        return self.preprocess(uid, data)

    def _note_cut(self, n_samples: int, window: int) -> None:
        if n_samples > window:
            self.left_out = (
                f"has {n_samples / self.rate:.2f} s, and the model hears no more than "
                f"{window / self.rate:.2f} s at once: the rest is left out"
            )


def check_not_empty(name: str, value: Any) -> None:
    """Verify that there is something in the data of an utterance.

    Raises:
        AudioError: The audio has no samples, or no frames.
        ValueError: There is nothing in the text, or but blanks.
    """
    if len(value.strip()) if isinstance(value, str) else np.size(value):
        return
    if name == "src_text":
        raise ValueError("the source text is empty")
    raise AudioError("the audio is empty")


def build_preprocessing(
    task: Any, train_args: Any, where: str = "the training config"
) -> CheckedPreprocessing | None:
    """Build ESPnet's preprocessing of a model of that task, which can do without.

    Args:
        task: ESPnet's class of the task.
        train_args: The options of the model's training.
        where: What a message calls the file of `train_args`.

    Raises:
        OptionError: The model's config describes none that ESPnet knows.
    """
    try:
        with whisper_ready(vars(train_args)):
            preprocess = task.build_preprocess_fn(train_args, False)
        if preprocess is None:
            return None
        needed = task.required_data_names(train=False, inference=True)
        conf = getattr(train_args, "preprocessor_conf", None) or {}
        of_whisper = getattr(train_args, "encoder", None) == "whisper"
        window = WHISPER_WINDOW if of_whisper else None
        return CheckedPreprocessing(preprocess, needed, conf, window)
    except Exception as e:  # of every kind: ESPnet verifies little
        raise OptionError(
            f"{where}: ESPnet cannot build the preprocessing that it describes "
            f"({said(e)})"
        ) from e


def check_transcript(names: Collection[str], train_args: Any) -> None:
    """Verify that a model has labels for the transcript that utterances come with.

    Args:
        names: Of the data.
        train_args: The options of the model's training.

    Raises:
        OptionError: It has none.
    """
    known = getattr(train_args, "transcript_token_list", None) is not None
    if "transcript" in names and not known:
        raise OptionError(
            "transcript: the model was trained without transcripts, and takes none: leave "
            "it out"
        )


def prepared(
    model: Any, tool: Tool, data: dict[str, Any]
) -> tuple[dict[str, Any], str]:
    """Prepare one utterance for a model, as a data set and its padding would.

    Args:
        model: The inference object.
        tool: The tool that it is of.
        data: By name: samples (samples,), texts.

    Returns:
        What the model is called with, and what its window leaves out: "" if nothing.

    Raises:
        OptionError: The model takes no transcript, and there is one.
        ValueError: There is nothing in it.
    """
    train_args = getattr(model, tool.train_args)
    preprocess = build_preprocessing(tool.task(), train_args)
    if preprocess is not None:
        check_transcript(data.keys(), train_args)
        data = preprocess("utterance", data)
    collate = tool.task().build_collate_fn(train_args, False)
    batch = collate([("utterance", data)])[1]
    return of_one(batch), preprocess.left_out if preprocess is not None else ""


def of_one(batch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the only utterance of a batch, without its lengths."""
    return {k: v[0] for k, v in batch.items() if not k.endswith("_lengths")}
