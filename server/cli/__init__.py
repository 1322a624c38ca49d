"""The `esker` command: one file a verb group, thin."""
