"""What only the recipes use: searches compared within one process, models packed."""
