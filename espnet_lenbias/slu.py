"""ESPnet's spoken language understanding with another search."""

from espnet_lenbias.inference.slu import Speech2Understand

__all__ = ["Speech2Understand"]
