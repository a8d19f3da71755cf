"""Writing tiny ESPnet models with random weights."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
import yaml


def write_model(folder: Path, task: Any, args: Namespace) -> tuple[Path, Path]:
    """Write what a training leaves, the same every time; return config and weights.

    Args:
        folder: Which is there.
        task: ESPnet's task class.
        args: The options of the training.
    """
    torch.manual_seed(0)
    model = task.build_model(args)
    with torch.no_grad():  # probabilities that differ, as a trained model's do
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.mul_(3 if "output" in name else 1.5)
    config, weights = folder / "config.yaml", folder / "model.pth"
    config.write_text(yaml.safe_dump(vars(args)))
    torch.save(model.state_dict(), weights)
    return config, weights
