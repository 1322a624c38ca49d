"""The suite `poison`: the effect of instructions planted where an agent reads."""
