"""The suite `observation`: which rows an observer makes of a transcript, against the facts that are in it."""
