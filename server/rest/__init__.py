"""The HTTP interface: thin, no SQL."""
