"""The suite `reflection`: the rows left of a condensed log, against those that should be."""
