"""Several channels mixed to one; no torch here."""

from pathlib import Path

import numpy as np

from espnet_lenbias.errors import AudioError

# Of the mean energy of the channels, what their mean has at least: half of it where two
# have nothing in common, and nothing where one is the other upside down.
_LEAST = 0.01


class Mixer:
    """Mixes a recording, block by block, and notices channels that cancel out.

    Args:
        path: The audio file, for the message.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._of_channels = 0.0
        self._of_mean = 0.0

    def mix(self, samples: np.ndarray) -> np.ndarray:
        """Return the mean of the channels: (samples, channels) to (samples,)."""
        mean: np.ndarray = samples.mean(axis=1)
        if samples.shape[1] > 1:
            self._of_channels += float(
                np.square(samples, dtype=np.float64).mean(1).sum()
            )
            self._of_mean += float(np.square(mean, dtype=np.float64).sum())
        return mean

    def check(self) -> None:
        """Verify, after the last block, that the mean is of what the channels hold.

        Raises:
            AudioError: It is all but silence, and they are not.
        """
        if self._of_mean < _LEAST * self._of_channels:
            raise AudioError(
                f"the channels of {self._path} cancel each other out where they are mixed "
                "to one (one is the other upside down): give a file of one of them, by "
                "ffmpeg -i FILE -af 'pan=mono|c0=c0' ONE_CHANNEL.wav"
            )
