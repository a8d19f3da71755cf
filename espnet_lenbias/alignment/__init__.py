"""Which frames labels and words belong to: pure functions, without ESPnet."""
