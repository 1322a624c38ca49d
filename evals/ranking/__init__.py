"""The weights of evidence in recall, fitted to published questions."""
