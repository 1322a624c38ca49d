"""Offline runs that measure what Esker is worth: they speak to a real server and score what it answers."""
