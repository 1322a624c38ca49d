"""Scores of what memory kept, by rules that a person can check: no model judges here, and nothing is random."""
