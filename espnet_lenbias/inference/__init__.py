"""ESPnet's inference objects with a choice of searches."""
