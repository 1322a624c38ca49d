"""Real agent CLIs through the gateway: each request before it and behind it, compared."""
