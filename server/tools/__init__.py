"""The MCP interface: thin, no SQL."""
