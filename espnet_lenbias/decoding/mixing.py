"""Several channels mixed to one; no torch here."""

from pathlib import Path

import numpy as np

from espnet_lenbias.errors import AudioError

# Of the mean energy of the channels, what their mean has at least: half of it where two
# have nothing in common, and nothing where one is the other upside down.
_LEAST = 0.01

_WINDOW = 2**14  # samples, about a second
_LOST = 0.1  # of the energy of the channels, what may be in windows that cancel out


class Mixer:
    """Mixes a recording, block by block, and notices channels that cancel out.

    Args:
        path: The audio file, for the message.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # Energy of each window: of all channels on average, and of their mean.
        self._of_channels: list[float] = []
        self._of_mean: list[float] = []

    def mix(self, samples: np.ndarray) -> np.ndarray:
        """Return the mean of the channels: (samples, channels) to (samples,)."""
        mean: np.ndarray = samples.mean(axis=1)
        if samples.shape[1] > 1:
            starts = range(0, len(mean), _WINDOW)
            of_all = np.square(samples, dtype=np.float64).mean(1)
            of_mean = np.square(mean, dtype=np.float64)
            self._of_channels += np.add.reduceat(of_all, starts).tolist()
            self._of_mean += np.add.reduceat(of_mean, starts).tolist()
        return mean

    def check(self) -> None:
        """Verify, after the last block, that the mean is of what the channels hold.

        Raises:
            AudioError: All of it or a part is all but silence, where they are not.
        """
        of_channels, of_mean = np.array(self._of_channels), np.array(self._of_mean)
        lost = of_channels[of_mean < _LEAST * of_channels].sum()
        if lost > _LOST * of_channels.sum():
            raise AudioError(
                f"the channels of {self._path} cancel each other out where they are mixed "
                "to one (one is the other upside down): give a file of one of them, by "
                "ffmpeg -i FILE -af 'pan=mono|c0=c0' ONE_CHANNEL.wav"
            )
