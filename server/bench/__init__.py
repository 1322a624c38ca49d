"""`esker bench`: Esker's speed on this machine, each figure beside its floor: the least that it could be."""
