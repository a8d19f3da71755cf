"""ESPnet's preprocessing, behind a look at what goes into it.

That of a model with a window (S2T) fills audio up to it, or cuts it, without a word:
afterwards an utterance without audio looks like any other.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from espnet_lenbias.errors import AudioError

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
