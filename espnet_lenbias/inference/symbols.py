"""Symbols that a prompt is made of: languages, tasks, timestamps."""

import re
from collections.abc import Collection, Iterable
from typing import Any

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.values import nearest

_SHOWN = 12  # of the symbols that a model has
# No language and no task.
_OTHERS = re.compile(r"<(\d+\.\d+|blank|unk|sos|eos|sop|na|sos/eos|space)>")


class Symbols(dict[str, int]):
    """Token -> its id; of a token that is not there it says so, and what there is."""

    def __missing__(self, token: str) -> int:
        """Refuse a token.

        Raises:
            OptionError: Names it, and the nearest symbol.
        """
        raise OptionError(no_symbol(token, self))


def check_symbol(key: str, token: Any, tokens: Collection[str]) -> None:
    """Verify that a model has the symbol of an option.

    Raises:
        OptionError: Names the option, and the nearest symbol.
    """
    if token not in tokens:
        raise OptionError(f"{key}: {no_symbol(token, tokens)}")


def no_symbol(token: Any, tokens: Iterable[str]) -> str:
    """Say that a model does not have a symbol, and which it has."""
    symbols = [
        t for t in tokens if re.fullmatch(r"<[^<>\s]+>", t) and not _OTHERS.fullmatch(t)
    ]
    hint = nearest(str(token), symbols)
    if not hint and symbols:
        more = ", ..." if len(symbols) > _SHOWN else ""
        hint = f" (it has {', '.join(symbols[:_SHOWN])}{more})"
    return f"the model has no symbol {token}{hint}"
