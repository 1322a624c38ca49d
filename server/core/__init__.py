"""The pure part: records, numbers, text and ranking; no I/O."""
