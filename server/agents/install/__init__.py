"""Setting up agent CLIs for Esker, and undoing it: one module for each client, and shared ones."""
