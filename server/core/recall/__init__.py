"""The answer to a question: evidence, selection, what is shown and what stands behind it."""
