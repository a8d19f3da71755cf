"""ESPnet's speech translation with another search, of whole audio and streaming."""

from espnet_lenbias.inference.st import Speech2Text
from espnet_lenbias.inference.st_streaming import Speech2TextStreaming

__all__ = ["Speech2Text", "Speech2TextStreaming"]
