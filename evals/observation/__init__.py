"""The suite `observation`: the rows that an observer makes of a transcript, against its facts."""
