"""The text of a recording, put together from those of its pieces."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from espnet_lenbias.decoding.plain_files import open_plain, replace_file
from espnet_lenbias.options.segments import Segment, by_recording

# Below the output folder, for the recordings; in it files as those of utterances.
RECORDINGS = "recordings"


def join_pieces(
    folder: Path,
    segments: Mapping[str, Segment],
    keys: Iterable[str],
    recordings: Iterable[str] = (),
) -> None:
    """Write the texts of recordings, each its pieces' in the order of time.

    Texts of the first rank are joined, by a space: ``<folder>/1best_recog/text``, and
    what else begins with that name, into ``<folder>/recordings/1best_recog/``.

    Args:
        folder: The results of the pieces.
        segments: The pieces; none: nothing is written.
        keys: Those that were decoded.
        recordings: They have a line even where they have no pieces; see
            :func:`espnet_lenbias.options.segments.by_recording`.

    Raises:
        OSError: Names a file that cannot be read or written.
    """
    pieces = by_recording(segments, keys, recordings)
    if not pieces:
        return
    for path in sorted(folder.glob("1best_recog/text*")):
        if path.suffix:  # of another format, see `format_files`
            continue
        with open_plain(path, "r") as f:
            texts = dict(_key_and_text(line) for line in f)
        lines = (
            f"{recording} {' '.join(filter(None, map(texts.get, of_one)))}\n"
            for recording, of_one in pieces.items()
        )
        replace_file(folder, f"{RECORDINGS}/1best_recog/{path.name}", lines)


def _key_and_text(line: str) -> tuple[str, str]:
    key, _, text = line.partition(" ")
    return key, text.strip()
