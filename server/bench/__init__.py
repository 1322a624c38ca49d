"""`esker bench`: what Esker costs on this machine, each figure beside the floor that nothing could be under."""
