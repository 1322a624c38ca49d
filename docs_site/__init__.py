"""Builds the pages of `docs/` and the reference, which is made from the code, into the site that a server shows."""
