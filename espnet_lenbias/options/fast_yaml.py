"""ESPnet's configs read and written by libyaml.

PyYAML's own loader takes five seconds for the 52 thousand labels in the config of a
Whisper model, and ESPnet asks for it by name.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import yaml


@contextmanager
def fast_yaml() -> Iterator[None]:
    """Have `yaml.safe_load` and `yaml.safe_dump` use libyaml, where PyYAML has it."""
    slow = yaml.SafeLoader, yaml.SafeDumper
    yaml.SafeLoader = getattr(yaml, "CSafeLoader", slow[0])  # type: ignore[misc]
    yaml.SafeDumper = getattr(yaml, "CSafeDumper", slow[1])  # type: ignore[misc]
    try:
        yield
    finally:
        yaml.SafeLoader, yaml.SafeDumper = slow  # type: ignore[misc]
