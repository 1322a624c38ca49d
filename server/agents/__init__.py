"""Agent CLIs: their transcripts, their hooks and their configuration."""
