"""Models that a setting names by a folder, and those that it names as a hub does."""

from pathlib import Path

_OF_A_PATH = ("/", ".", "~")


def require_folder(model: str) -> None:
    """Raise FileNotFoundError for a path that leads to no folder, since no hub has a model of that name either."""
    if not model.startswith(_OF_A_PATH) or Path(model).is_dir():
        return
    home = "; write out what ~ stands for" if model.startswith("~") else ""
    raise FileNotFoundError(f"there is no such folder{home}.")
