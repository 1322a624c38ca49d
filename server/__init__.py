"""Esker: a memory server that many agent CLIs share."""
