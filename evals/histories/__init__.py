"""Histories: many sittings of one project, from published data."""
