"""Figures of a report, as matplotlib figures that share no state."""
