"""Observes and reflects by rules, without a model: deterministic, and every word comes from the transcript."""
