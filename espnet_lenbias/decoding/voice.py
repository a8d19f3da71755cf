"""Where there is speech in audio, by Silero's detector, read block by block.

The detector is an extra of this package (``vad``): without the silences of a recording
there is no good place to cut it.
"""

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch

from espnet_lenbias.decoding.mixing import Mixer
from espnet_lenbias.errors import AudioError, OptionError
from espnet_lenbias.options.cut_audio import damage_named

_RATE = 16000
_FRAME = 512  # samples at that rate: what the detector takes at once
FRAME_SECONDS = _FRAME / _RATE

# What is read at once: whole frames, and whole seconds for any sampling rate.
_BLOCK_SECONDS = 32


def load_detector() -> Any:
    """Return Silero's detector: called with (1, samples) of a frame and their rate.

    Raises:
        OptionError: It is not installed.
    """
    try:
        from silero_vad import load_silero_vad
    except ImportError as e:
        raise OptionError(
            "silences are found by silero-vad, which is not installed: pip install "
            "silero-vad, or this package with its extra vad"
        ) from e
    with warnings.catch_warnings():  # of what Silero's own code will have to change
        warnings.simplefilter("ignore", FutureWarning)
        return load_silero_vad()


@torch.no_grad()
def speech_probabilities(path: Path, detector: Any) -> np.ndarray:
    """Return how probable speech is in each frame of an audio file, (frames,).

    Args:
        path: The file, of any sampling rate; of several channels the mean is taken.
        detector: See :func:`load_detector`.

    Raises:
        AudioError: It holds NaN or infinity, is damaged, or no audio, or its channels
            cancel each other out.
        OSError: It cannot be read.
    """
    detector.reset_states()
    found = [
        float(detector(frame.unsqueeze(0), _RATE))
        for block in _blocks(path)
        for frame in block.unfold(0, _FRAME, _FRAME)
    ]
    return np.array(found, dtype=np.float32)


def _blocks(path: Path) -> Iterator[torch.Tensor]:
    """Yield the audio at the detector's rate, (samples,) of whole frames each."""
    from torchaudio.functional import resample

    mixer = Mixer(path)
    with damage_named(path), soundfile.SoundFile(os.fsencode(path)) as f:
        size = _BLOCK_SECONDS * f.samplerate
        # not by its `blocks`, which go on to the length that the header says
        while len(samples := f.read(size, dtype="float32", always_2d=True)):
            block = torch.from_numpy(mixer.mix(samples))
            if not bool(block.isfinite().all()):
                raise AudioError(f"{path} holds NaN or infinity: make it anew")
            if f.samplerate != _RATE:
                block = resample(block, f.samplerate, _RATE)
            yield torch.nn.functional.pad(block, (0, -len(block) % _FRAME))
        mixer.check()
