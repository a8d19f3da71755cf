"""The option `repeat_limit` of the searches: how often a cycle of labels may repeat."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from espnet_lenbias.options.values import check_keys, count


@dataclass(frozen=True)
class RepeatLimit:
    """No cycle of up to `labels` labels stands more than `times` times in a row."""

    times: int
    labels: int = 100

    def __post_init__(self) -> None:
        for field in fields(self):
            value = count(f"repeat_limit.{field.name}", getattr(self, field.name))
            object.__setattr__(self, field.name, value)


def read_repeat_limit(value: Any) -> RepeatLimit | None:
    """Return what the `repeat_limit` of a config says; None: there is none.

    Args:
        value: `times` alone, or ``{times: ..., labels: ...}``.

    Raises:
        ValueError: Says what it must be.
    """
    if value is None or isinstance(value, RepeatLimit):
        return value
    if not isinstance(value, Mapping):
        return RepeatLimit(count("repeat_limit", value))
    check_keys("repeat_limit", value, [field.name for field in fields(RepeatLimit)])
    if "times" not in value:
        raise ValueError("repeat_limit needs times: say repeat_limit: {times: ...}")
    return RepeatLimit(**value)
