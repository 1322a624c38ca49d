"""The embedding worker: rows without a vector get one, in a process of its own."""
