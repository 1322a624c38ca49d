"""The parts of a transcript: blocks, turns, slices, passages, and the trust of their authors."""
