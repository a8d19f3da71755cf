"""Folders in LibriSpeech's layout: which of them this recipe has made."""

# The first line of SPEAKERS.TXT.
HEADING = ";ID  |SEX| SUBSET           |UTTERANCES| NAME\n"


def take_folder(root):
    """Make a folder this recipe's, before anything is written to it.

    Raises:
        SystemExit: It holds what this recipe has not made, as LibriSpeech itself.
    """
    speakers = root / "SPEAKERS.TXT"
    if not is_own(root):
        raise SystemExit(
            f"{root} holds files that this recipe has not made, and would write over: "
            "name another folder, or move them"
        )
    root.mkdir(parents=True, exist_ok=True)
    if not speakers.is_file():
        speakers.write_text(HEADING)


def is_own(root):
    """Tell whether nothing in a folder is of others."""
    if not root.is_dir() or not any(root.iterdir()):
        return True
    speakers = root / "SPEAKERS.TXT"
    return speakers.is_file() and speakers.read_text().startswith(HEADING)
