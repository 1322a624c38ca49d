"""Retrieval: conversations go in through the API, questions about them are asked through the API, hits are scored."""
