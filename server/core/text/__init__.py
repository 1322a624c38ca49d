"""Words, tokens and cutting; knows nothing of rows."""
