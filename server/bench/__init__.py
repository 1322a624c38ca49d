"""`esker bench`: Esker's speed on this machine, each figure beside its floor, the lowest possible value."""
