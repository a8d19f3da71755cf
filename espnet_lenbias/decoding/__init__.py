"""Data sets decoded into result folders, by one process or by many."""
