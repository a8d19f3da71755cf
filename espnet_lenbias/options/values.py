"""What stands in configs: numbers and switches, read as ESPnet's parsers read them.

A yaml file can hold a number as text: in quotes, or as ``5e-1``, which is no number for
PyYAML. ESPnet's parsers read such a text as on a command line. Here every other way of
giving an option reads it likewise, so that a config means the same everywhere.
"""

import argparse
import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

# Whole numbers of options are no larger: what is computed of them fits torch's then.
MOST = 2**31 - 1

# The texts that ESPnet takes for a switch.
_SWITCHES = dict.fromkeys(("y", "yes", "t", "true", "on", "1"), True) | dict.fromkeys(
    ("n", "no", "f", "false", "off", "0"), False
)


def finite(text: str) -> float:
    """Read a number of a command line, for argparse, which names the option."""
    value = float(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be a finite number, not {text}")
    return value


def from_one(text: str) -> int:
    """Read a whole number of 1 or more of a command line, for argparse."""
    return _from(1, text)


def from_zero(text: str) -> int:
    """Read a whole number of 0 or more of a command line, for argparse."""
    return _from(0, text)


def _from(least: int, text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(
            f"must be a whole number of {least} or more, not {text}"
        )
    if value > MOST:
        raise argparse.ArgumentTypeError(f"must be {MOST} at most, not {text}")
    return value


def check_keys(key: str, given: Iterable[str], valid: Sequence[str]) -> None:
    """Verify the keys of an option that is a mapping.

    Raises:
        ValueError: Names the key that is wrong, and the nearest valid one.
    """
    for name in given:
        if name not in valid:
            raise ValueError(
                f"{key} has no option {name}{nearest(name, valid)} (its options: "
                f"{', '.join(valid)})"
            )


def number(
    key: str,
    value: object,
    wanted: str = "a number",
    valid: Callable[[float], bool] = lambda _: True,
) -> float:
    """Return a number; a text is read as one.

    Args:
        key: The option.
        value: As given.
        wanted: What a message says that it must be.
        valid: Whether a number, which is finite, will do.

    Raises:
        ValueError: Names the option.
    """
    read = value
    try:
        # a whole number stays one, but where torch takes it for a float alone
        if isinstance(value, str) or (isinstance(value, int) and abs(value) > MOST):
            read = float(value)
    except (ValueError, OverflowError):
        read = None
    is_number = isinstance(read, Real) and not isinstance(read, bool)
    if not is_number or not math.isfinite(read) or not valid(read):  # type: ignore[arg-type]
        raise ValueError(f"{key} must be {wanted}, not {value!r}")
    return read if isinstance(read, int) else float(read)  # type: ignore[arg-type]


def count(key: str, value: object) -> int:
    """Return a whole number of 1 or more; a text is read as one.

    Raises:
        ValueError: Names the option.
    """
    return whole(key, value, "a whole number of 1 or more", lambda n: n >= 1)


def whole(
    key: str,
    value: object,
    wanted: str = "a whole number",
    valid: Callable[[int], bool] = lambda _: True,
) -> int:
    """Return a whole number; a text is read as one.

    Args:
        key: The option.
        value: As given.
        wanted: What a message says that it must be.
        valid: Whether a whole number will do.

    Raises:
        ValueError: Names the option.
    """
    read = value
    if isinstance(value, str):
        try:
            read = int(value)
        except ValueError:
            read = None
    if not isinstance(read, Integral) or isinstance(read, bool) or not valid(int(read)):
        raise ValueError(f"{key} must be {wanted}, not {value!r}")
    if abs(int(read)) > MOST:
        raise ValueError(f"{key} must be {MOST} at most, not {value!r}")
    return int(read)


def switch(key: str, value: object) -> bool:
    """Return true or false; a text is read as one of them, and so are 1 and 0.

    Raises:
        ValueError: Names the option.
    """
    written = str(value) if isinstance(value, Integral) else value
    read = _SWITCHES.get(written.lower()) if isinstance(written, str) else written
    if not isinstance(read, bool):
        raise ValueError(f"{key} must be true or false, not {value!r}")
    return read


def score_number(text: str) -> float:
    """Read a score as ESPnet writes it: ``-1.5`` or ``tensor(-1.5, device='cuda:0')``."""
    return float(text.removeprefix("tensor(").partition(",")[0].removesuffix(")"))


def plain(value: Any) -> Any:
    """Return a value of any option as it can be compared and shown.

    Numbers that are text are read, and a mapping is without what is not set.
    """
    if isinstance(value, Mapping):
        read = {key: plain(v) for key, v in value.items()}
        return {k: v for k, v in read.items() if v is not None and v is not False}
    try:
        return number("", value)
    except ValueError:
        return value


def nearest(name: str, valid: Iterable[str], least: float = 0.6) -> str:
    """Return ``"; did you mean X?"`` for the most similar valid name, or ``""``.

    Args:
        name: As it was given.
        valid: The names that there are.
        least: How similar one must be, 1 at most.
    """
    close = difflib.get_close_matches(str(name), list(valid), n=1, cutoff=least)
    return f"; did you mean {close[0]}?" if close else ""


def take_as_written(parser: argparse.ArgumentParser) -> None:
    """Have a parser take values as they are written.

    So -1e-3 is a number, as -0.001 is, and no option; and ``--option=--`` is a mistake,
    where Pythons up to 3.12 may hand on an empty list.
    """
    parser._negative_number_matcher = re.compile(
        r"^-(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$", re.IGNORECASE
    )
    read = parser._get_values

    def values(action: argparse.Action, arg_strings: list[str]) -> Any:
        if arg_strings == ["--"] and action.option_strings:
            raise argparse.ArgumentError(action, "-- is no value")
        return read(action, arg_strings)

    parser._get_values = values  # type: ignore[method-assign]
