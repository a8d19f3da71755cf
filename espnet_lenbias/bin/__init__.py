"""Drop-in command lines for ESPnet's inference tools."""
