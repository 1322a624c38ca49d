"""The answer to a question: relevance, selection, rendering, and the sources of a hit."""
