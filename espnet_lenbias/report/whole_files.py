"""Files that are written whole or not at all, and through no link."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a draft, of a name that nobody can foresee, which then becomes the file.

    A link that lies in the place of the file is replaced; what it leads to stays.
    """
    draft = path.with_name(f".draft-{secrets.token_hex(8)}{path.suffix}")
    try:
        yield draft
        os.replace(draft, path)
    except BaseException as e:
        with suppress(OSError):
            draft.unlink()
        if isinstance(e, OSError) and e.errno is not None:
            raise OSError(e.errno, e.strerror, str(path)) from e
        raise
