"""Tiny ESPnet models with random weights, and how they are written."""

from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml


@dataclass(frozen=True)
class Model:
    """The two files that an ESPnet training leaves."""

    tool: str  # the letters that its options begin with
    config: Path
    weights: Path

    @property
    def files(self) -> dict[str, str]:
        return {
            f"{self.tool}_train_config": str(self.config),
            f"{self.tool}_model_file": str(self.weights),
        }

    @property
    def options(self) -> list[str]:
        return [word for key, path in self.files.items() for word in (f"--{key}", path)]


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
