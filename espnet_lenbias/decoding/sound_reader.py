"""Audio files read as ESPnet's inference tools read them."""

from collections.abc import Iterator, KeysView, Mapping
from typing import Any

import numpy as np
import soundfile

# What libsndfile says of audio that has no samples to go to, such as GSM.
_UNSEEKABLE = "unseekable file type"


class FileReader(Mapping[str, tuple[int, np.ndarray]]):
    """Reads utterances as ESPnet's reader of ``wav.scp`` does; a subclass says how.

    What it returns for a key: the sampling rate, and (samples,) or (samples, channels).

    Attributes:
        data: The file of each utterance.

    """

    def __init__(self, data: Mapping[str, str]):
        """Take the file of each utterance."""
        self.data = data

    def keys(self) -> KeysView[str]:
        """Return the utterances; a Mapping's own would read audio to find one."""
        return self.data.keys()

    def __contains__(self, key: object) -> bool:
        return key in self.data

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)


class SoundReader(FileReader):
    """Reads what ESPnet's reader of ``wav.scp`` reads, and what has no places to go to.

    That reader goes to the first sample, which is there already. ESPnet's inference tools
    have another one, which does not.
    """

    def __init__(self, reader: Any):
        """Take ESPnet's ``SoundScpReader``."""
        super().__init__(reader.data)
        self._reader = reader

    def __getitem__(self, key: str) -> tuple[int, np.ndarray]:
        try:
            rate, samples = self._reader[key]
        except soundfile.LibsndfileError as e:
            if _UNSEEKABLE not in str(e):
                raise
            dtype = self._reader.dtype
            # as in ESPnet's: libsndfile knows no halves
            read = "float32" if dtype == "float16" else dtype
            samples, rate = soundfile.read(self.data[key], dtype=read)
            samples = samples.astype(dtype)
        return rate, samples
