"""The suite `poison`: what becomes of instructions that somebody planted where an agent reads."""
