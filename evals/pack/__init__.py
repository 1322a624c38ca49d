"""The suite `pack`: which rows a new session begins with, within its scope and its budget, and that they stay."""
