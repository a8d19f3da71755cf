"""ESPnet's speech translation with another search."""

from espnet_lenbias.inference.st import Speech2Text

__all__ = ["Speech2Text"]
