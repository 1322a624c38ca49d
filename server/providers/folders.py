"""Distinguishes a setting that names a folder from one that names a model of a hub."""

from pathlib import Path

_OF_A_PATH = ("/", ".", "~")


def require_folder(model: str) -> None:
    """Raise FileNotFoundError for a path to a missing folder, since no hub has a model of that name either."""
    if not model.startswith(_OF_A_PATH) or Path(model).is_dir():
        return
    home = "; write the home directory instead of ~" if model.startswith("~") else ""
    raise FileNotFoundError(f"there is no such folder{home}.")
