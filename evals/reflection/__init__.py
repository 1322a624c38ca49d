"""The suite `reflection`: what is left of a log of rows when it has been condensed, against what should be."""
