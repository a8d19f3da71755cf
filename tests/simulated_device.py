"""The pretended accelerator of the bench, for tests; it is described in `simulation`.

with simulated_device() as counts:
    found = search(on_device(x))
assert counts.of("launches") < 100
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "recipes" / "speed"))

from simulation import DEVICE, Counts, MixedDevices, on_device, simulated_device

__all__ = ["DEVICE", "Counts", "MixedDevices", "on_device", "simulated_device"]
