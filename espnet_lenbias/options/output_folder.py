"""The folder that a tool writes to, tried before there is any work that could be lost."""

import argparse
import errno
import os
from pathlib import Path
from tempfile import TemporaryFile

from espnet_lenbias.errors import OptionError

# A full disk, a full quota, a limit on the size of files.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def named_path(text: str) -> Path:
    """Read the name of a file or folder, as argparse's `type`.

    An empty one, as of a variable that is not set, would be the folder that a person is
    in.

    Raises:
        ArgumentTypeError: It is empty.
    """
    if not text.strip():
        raise argparse.ArgumentTypeError("the name is empty: name a file or folder")
    return Path(text)


def make_output_dir(folder: Path) -> None:
    """Make the folder of ``--output_dir`` and verify that files can be made there.

    Raises:
        OptionError: It is no folder, or not to be written.
        OSError: There is no room.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):  # permissions alone do not tell everywhere
            pass
    except RecursionError as e:
        raise OptionError(
            f"output_dir names {len(folder.parts)} folders in one another: name another "
            "folder"
        ) from e
    except OSError as e:
        if e.errno in NO_ROOM:
            raise
        # of os.path: a Path raises for a name that is too long
        files = [path for path in (folder, *folder.parents) if os.path.isfile(path)]
        why = f"{files[0]} is a file" if files else e.strerror
        raise OptionError(
            f"output_dir {folder} cannot be written ({why}): name another folder"
        ) from e
