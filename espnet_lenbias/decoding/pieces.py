"""Pieces of recordings, read without the rest of them."""

from collections.abc import Mapping

import numpy as np
import soundfile

from espnet_lenbias.decoding.sound_reader import FileReader
from espnet_lenbias.options.audio_files import read_stretch
from espnet_lenbias.options.segments import Segment


class PieceReader(FileReader):
    """Reads utterances from `segments`."""

    def __init__(self, segments: Mapping[str, Segment], dtype: str):
        """Take pieces, and the type that their samples get."""
        super().__init__({key: piece.file for key, piece in segments.items()})
        self._segments = segments
        self._dtype = dtype

    def __getitem__(self, key: str) -> tuple[int, np.ndarray]:
        piece = self._segments[key]
        with soundfile.SoundFile(piece.file) as f:
            samples = read_stretch(f, piece.start, piece.end, dtype=self._dtype)
            return f.samplerate, samples
