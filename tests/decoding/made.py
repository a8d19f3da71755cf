"""Results, audio and detectors made by hand."""

from pathlib import Path

import numpy as np
import soundfile

from tests.conftest import RATE

ROW = {
    "1best_recog/token": "A",
    "1best_recog/token_int": "3",
    "1best_recog/score": "-1.0",
    "1best_recog/text": "A",
}


def write_wav(scp: Path, key: str, samples: np.ndarray) -> None:
    """Give an utterance other audio."""
    soundfile.write(scp.parent / f"{key}.wav", samples, RATE, subtype="FLOAT")


class Loudness:
    """Stands in for Silero's detector: what is loud is speech."""

    def reset_states(self):
        pass

    def __call__(self, frame, rate):
        assert frame.shape == (1, 512)
        assert rate == 16000
        return (frame.abs().mean(dim=1, keepdim=True) > 0.1).float()
