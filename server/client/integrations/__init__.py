"""Esker in agent frameworks, one module each; a module imports its framework, which is not installed with Esker."""
