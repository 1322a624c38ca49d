"""Observing and reflecting by rules and structure, without a model: deterministic, grounded by construction."""
