"""Esker in agent frameworks; `make integrations` installs them, and `make test` skips these tests."""
