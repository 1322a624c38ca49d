"""Language models, their extractive stand-ins, and embedders. They never see a connection."""
