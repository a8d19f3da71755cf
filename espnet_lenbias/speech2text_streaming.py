"""ESPnet's streaming speech recognition with another search."""

from espnet_lenbias.inference.asr_streaming import Speech2TextStreaming

__all__ = ["Speech2TextStreaming"]
