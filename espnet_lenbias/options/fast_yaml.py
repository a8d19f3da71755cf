"""ESPnet's configs read and written by libyaml.

PyYAML's own loader takes five seconds for the 52 thousand labels in the config of a
Whisper model, and ESPnet asks for it by name.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

# Those of libyaml, where PyYAML comes with it.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@contextmanager
def fast_yaml() -> Iterator[None]:
    """Have `yaml.safe_load` and `yaml.safe_dump` use libyaml, where PyYAML has it."""
    slow = yaml.SafeLoader, yaml.SafeDumper
    yaml.SafeLoader, yaml.SafeDumper = LOADER, DUMPER  # type: ignore[misc]
    try:
        yield
    finally:
        yaml.SafeLoader, yaml.SafeDumper = slow  # type: ignore[misc]
