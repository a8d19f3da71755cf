"""How long an output may be: ESPnet's length ratios as numbers."""

from typing import NamedTuple

from espnet_lenbias.options.values import number


class LengthLimits(NamedTuple):
    """The limits of one utterance's output."""

    # Fewest labels of the text, without the end label, as in ESPnet: the end label is
    # masked at N <= min_labels.
    min_labels: int
    # The last position that is expanded. If nothing has ended by then, the end label
    # alone is scored at the next one, so the text may have as many labels.
    max_position: int
    # Whether the decoder has no positions for a longer output that was asked for.
    capped: bool = False


def length_limits(
    n_frames: int, maxlenratio: float, minlenratio: float, room: int | None = None
) -> LengthLimits:
    """Turn ESPnet's length ratios into limits.

    Args:
        n_frames: T.
        maxlenratio: 0: T positions; positive: this share of T; negative: so many.
        minlenratio: Likewise, in labels of the text; 0: none need be there.
        room: How many labels the decoder has positions for; None: any number.

    Raises:
        ValueError: A ratio is infinite or no number.
    """
    maxlenratio = number("maxlenratio", maxlenratio, "a finite number")
    minlenratio = number("minlenratio", minlenratio, "a finite number")
    longest = n_frames if maxlenratio == 0 else _count(maxlenratio, n_frames)
    longest = max(1, longest)
    if room is None or longest <= room:
        return LengthLimits(_count(minlenratio, n_frames), longest)
    return LengthLimits(_count(minlenratio, n_frames), room, capped=True)


def _count(ratio: float, n_frames: int) -> int:
    return -int(ratio) if ratio < 0 else int(ratio * n_frames)
