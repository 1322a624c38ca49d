"""The calendar in a text and in a question."""
