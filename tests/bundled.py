"""The bundled models."""

from pathlib import Path

PRETRAINED = Path(__file__).parents[1] / "recipes" / "mini_librispeech" / "pretrained"


def bundled(name: str) -> Path:
    """Return ``<name>.zip``."""
    return PRETRAINED / f"{name}.zip"
