"""Synthetic secrets, made at run time, and how many of them are masked."""
