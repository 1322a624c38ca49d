"""Retrieval: store conversations and ask questions about them through the API, and score the hits."""
