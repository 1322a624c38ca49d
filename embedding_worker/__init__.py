"""The embedding worker: a process that embeds rows which have no vector."""
