"""Words, tokens and the cutting of texts, independent of rows."""
