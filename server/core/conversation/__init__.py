"""A transcript's parts: blocks, turns, slices, passages, and whose words they are."""
