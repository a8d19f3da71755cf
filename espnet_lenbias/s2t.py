"""ESPnet's speech-to-text of many languages and tasks (OWSM) with another search."""

from espnet_lenbias.inference.s2t import Speech2Text

__all__ = ["Speech2Text"]
