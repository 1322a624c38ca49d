"""The suite `pack`: the rows of a new session's pack, within scope and budget, and the same bytes again."""
