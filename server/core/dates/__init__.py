"""Dates and times in texts and in questions."""
