"""The bundled models and audio."""

from pathlib import Path

_RECIPE = Path(__file__).parents[1] / "recipes" / "mini_librispeech"
PRETRAINED = _RECIPE / "pretrained"
SLICE = _RECIPE / "slice" / "LibriSpeech"


def bundled(name: str) -> Path:
    """Return ``<name>.zip``."""
    return PRETRAINED / f"{name}.zip"
