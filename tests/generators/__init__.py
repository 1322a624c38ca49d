"""The client for TypeScript and generated clients; `make generators` installs what these tests need."""
