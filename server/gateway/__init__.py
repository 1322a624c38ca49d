"""The gateway: a proxy for models that keeps the transcript of an agent and puts the pack in front of its prompt."""
