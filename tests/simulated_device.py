"""The pretended accelerator of the bench, for tests; it is described in `simulation`.

with simulated_device() as counts:
    found = search(on_device(x))
assert counts.of("launches") < 100
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "recipes" / "speed"))

try:
    from simulation import DEVICE, Counts, MixedDevices, on_device, simulated_device
except ImportError as error:  # the torch of ESPnet 202511
    pytest.skip(str(error), allow_module_level=True)

__all__ = ["DEVICE", "Counts", "MixedDevices", "on_device", "simulated_device"]
