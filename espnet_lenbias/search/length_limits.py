"""How long an output may be: ESPnet's length ratios as numbers."""

from typing import NamedTuple


class LengthLimits(NamedTuple):
    """The limits of one utterance's output."""

    # Fewest labels of the text, without the end label, as in ESPnet: the end label is
    # masked at N <= min_labels.
    min_labels: int
    # The last position that is expanded. If nothing has ended by then, the end label
    # alone is scored at the next one, so the text may have as many labels.
    max_position: int


def length_limits(
    n_frames: int, maxlenratio: float, minlenratio: float
) -> LengthLimits:
    """Turn ESPnet's length ratios into limits.

    Args:
        n_frames: T.
        maxlenratio: 0: T positions; positive: this share of T; negative: so many.
        minlenratio: Likewise, in labels of the text; 0: none need be there.
    """
    longest = n_frames if maxlenratio == 0 else _count(maxlenratio, n_frames)
    return LengthLimits(_count(minlenratio, n_frames), max(1, longest))


def _count(ratio: float, n_frames: int) -> int:
    return -int(ratio) if ratio < 0 else int(ratio * n_frames)
