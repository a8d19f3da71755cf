"""Configs read and written by libyaml.

PyYAML's own loader takes five seconds for the 52 thousand labels in the config of a
Whisper model, and ESPnet asks for it by name.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from espnet_lenbias.errors import OptionError, one_line

# Those of libyaml, where PyYAML comes with it.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


# What is raised by a text that is no yaml, or whose values cannot be built, such as the
# date 2024-02-30, the number 0x_, or a text that is said to be a date.
NO_YAML = (
    *(yaml.YAMLError, RecursionError),
    *(ValueError, LookupError, TypeError, AttributeError),
)


def read_config(path: str | Path) -> Any:
    """Return what a config holds that a person has written.

    Raises:
        OSError: It cannot be read.
        OptionError: It is no yaml, or has an option twice.
    """
    try:
        return read_yaml(Path(path).read_text(encoding="utf-8-sig"))
    except OptionError as e:
        raise OptionError(f"{path}: {e}") from e
    except NO_YAML as e:
        raise OptionError(f"{path}: not a yaml file: {one_line(e)}") from e


def read_yaml(text: str) -> Any:
    """Return what a yaml holds that a person has written.

    Raises:
        OptionError: It has an option twice, of which the last would count; or see
            :func:`load_yaml`.
        Exception: One of :data:`NO_YAML`: it is no yaml.
    """
    twice = next(_twice(yaml.compose(text, Loader=LOADER)), None)
    if twice is not None:
        key, first, line = twice
        where = f"line {line} has {key} twice"
        if first != line:
            where = f"lines {first} and {line} have {key}"
        raise OptionError(f"{where}: leave one of them out")
    return load_yaml(text)


def load_yaml(text: str | bytes) -> Any:
    """Return what a yaml holds.

    Raises:
        OptionError: A value of it holds itself, by an alias: nobody could write it out.
        Exception: One of :data:`NO_YAML`: it is no yaml.
    """
    value = yaml.load(text, Loader=LOADER)
    if _holds_itself(value, set(), set()):
        raise OptionError(
            "an alias stands within what it names: write out what is meant"
        )
    return value


def _holds_itself(value: Any, around: set[int], seen: set[int]) -> bool:
    """Tell whether a value is within itself.

    Args:
        value: A mapping, a list, or anything else.
        around: The ids of those that it is in.
        seen: The ids of those that do not hold themselves.
    """
    if not isinstance(value, dict | list) or id(value) in seen:
        return False
    if id(value) in around:
        return True
    around.add(id(value))
    within = value.values() if isinstance(value, dict) else value
    found = any(_holds_itself(part, around, seen) for part in within)
    around.remove(id(value))
    seen.add(id(value))
    return found


def _twice(node: yaml.Node | None) -> Iterator[tuple[str, int, int]]:
    """Yield what a mapping of a document has twice, and in which lines."""
    waiting, seen = [node], set()
    while waiting:
        node = waiting.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))  # an alias is the node that it stands for
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        if isinstance(node, yaml.MappingNode):
            lines: dict[str, int] = {}
            for key, value in node.value:
                waiting.append(value)
                line = key.start_mark.line + 1
                if isinstance(key, yaml.ScalarNode):
                    if key.value in lines:
                        yield key.value, lines[key.value], line
                    lines[key.value] = line


@contextmanager
def fast_yaml() -> Iterator[None]:
    """Have `yaml.safe_load` and `yaml.safe_dump` use libyaml, where PyYAML has it."""
    slow = yaml.SafeLoader, yaml.SafeDumper
    yaml.SafeLoader, yaml.SafeDumper = LOADER, DUMPER  # type: ignore[misc]
    try:
        yield
    finally:
        yaml.SafeLoader, yaml.SafeDumper = slow  # type: ignore[misc]
