"""Readers of published data sets, a module for each."""
