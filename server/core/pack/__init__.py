"""The context pack: which rows, in which order, as text."""
