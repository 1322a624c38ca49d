"""A pool as a whole: its file, its evaluation, MEMORY.md, the daily log."""
