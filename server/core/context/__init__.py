"""The request to a model: the tail of messages, the frozen prefix, what the call used."""
