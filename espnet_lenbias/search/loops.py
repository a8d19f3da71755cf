"""Outputs that loop: where the same labels, or words, stand several times in a row.

No torch in here: reports ask, too.
"""

from collections.abc import Sequence

# So many times in a row are a loop.
TIMES = 4


def loops(labels: Sequence[object], times: int = TIMES) -> bool:
    """Tell whether some labels stand `times` times, one right behind the other.

    Args:
        labels: Of a text, or its words.
        times: 2 or more.
    """
    for cycle in range(1, len(labels) // times + 1):
        same = 0  # the last ones that are equal to the one a cycle before
        for label, before in zip(labels[cycle:], labels):
            same = same + 1 if label == before else 0
            if same == (times - 1) * cycle:
                return True
    return False
