"""Esker: a memory server that many agent CLIs share."""

VERSION = "0.1.0"
