"""Data sets of others, read into ours: a module for each."""
