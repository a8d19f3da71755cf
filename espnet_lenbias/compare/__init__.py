"""Searches compared within one process: what only the recipes use."""
