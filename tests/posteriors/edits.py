"""What the measures of errors are compared with."""


def distance(a, b) -> int:
    """Return the edit distance, the textbook way."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        left, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            change = left + (x != y)
            left, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, change)
    return row[-1]
