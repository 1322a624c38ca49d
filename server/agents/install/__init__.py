"""Setting agent CLIs up for Esker, and taking it back: one module a client, and what they share."""
