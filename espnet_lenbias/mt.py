"""ESPnet's text translation with another search."""

from espnet_lenbias.inference.mt import Text2Text

__all__ = ["Text2Text"]
