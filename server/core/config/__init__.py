"""Environment in, settings out."""
