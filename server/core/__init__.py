"""The rules of memory, without I/O; docs/architecture.md lists the rooms."""
