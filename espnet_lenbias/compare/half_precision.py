"""Parameters in half precision, as the recipes pack them: half as large.

Loading a model restores float32.
"""

from collections.abc import Mapping

import torch


def half_precision(
    parameters: Mapping[str, torch.Tensor], *, lossless: bool = False
) -> dict[str, torch.Tensor]:
    """Return parameters in half precision.

    Whole numbers stay as they are, and so do the feature statistics of an ESPnet model
    (`normalize`), which half precision would falsify.

    Args:
        parameters: By their names in a model file of ESPnet's.
        lossless: Whether those that lose digits stay as they are, too.
    """
    return {
        name: value
        if not value.is_floating_point() or "normalize" in name
        else _halved(value, lossless)
        for name, value in parameters.items()
    }


def _halved(value: torch.Tensor, lossless: bool) -> torch.Tensor:
    halved = value.half()
    if lossless and not torch.equal(halved.to(value.dtype), value):
        return value
    return halved
