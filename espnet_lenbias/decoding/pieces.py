"""Pieces of recordings, read without the rest of them."""

from collections.abc import Iterator, KeysView, Mapping

import numpy as np
import soundfile

from espnet_lenbias.options.audio_files import read_stretch
from espnet_lenbias.options.segments import Segment


class PieceReader(Mapping[str, tuple[int, np.ndarray]]):
    """Reads utterances as ESPnet's reader of ``wav.scp`` does, from `segments`.

    What it returns for a key: the sampling rate, and (samples,) or (samples, channels).

    Attributes:
        data: The file of each utterance.

    """

    def __init__(self, segments: Mapping[str, Segment], dtype: str):
        """Take pieces, and the type that their samples get."""
        self.data = {key: piece.file for key, piece in segments.items()}
        self._segments = segments
        self._dtype = dtype

    def __getitem__(self, key: str) -> tuple[int, np.ndarray]:
        piece = self._segments[key]
        with soundfile.SoundFile(piece.file) as f:
            samples = read_stretch(f, piece.start, piece.end, dtype=self._dtype)
            return f.samplerate, samples

    def keys(self) -> KeysView[str]:
        """Return the utterances; a Mapping's own would read audio to find one."""
        return self._segments.keys()

    def __contains__(self, key: object) -> bool:
        return key in self._segments

    def __iter__(self) -> Iterator[str]:
        return iter(self._segments)

    def __len__(self) -> int:
        return len(self._segments)
