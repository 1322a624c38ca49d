"""The Python client for programs without asyncio; its modules are written by `.ci/write-sync-client`."""
