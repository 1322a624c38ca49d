"""The user's home and data directories, in which Esker keeps its files unless a setting names another directory."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path, PurePath

from esker.server.core.errors import Misconfigured

MODEL_FOLDER = "esker-model"
"""The last part of the directory in which agent CLIs run as language models: their sessions there are not observed."""


def is_model_folder(cwd: str | None) -> bool:
    """Whether a session in this directory is one of Esker's own calls of a CLI."""
    return cwd is not None and PurePath(cwd).name == MODEL_FOLDER


def home() -> Path:
    """Return the home directory. Raises Misconfigured if it is unknown."""
    return expanded(Path("~"))


def expanded(path: Path) -> Path:
    """Return `path` with a leading `~` or `~user` expanded. Raises Misconfigured if that home is unknown."""
    # With an empty HOME, Python takes the root directory for the home.
    if path.parts[:1] == ("~",) and os.environ.get("HOME") == "":
        raise unknown_home()
    try:
        found = path.expanduser()
    except RuntimeError as error:
        if path.parts[0] == "~":
            raise unknown_home() from error
        raise Misconfigured(f"{path}: the user does not exist.", hint="Write the path in full.") from error
    if path.parts[:1] == ("~",) and not found.is_absolute():
        raise unknown_home()
    return found


def data_dir(environ: Mapping[str, str]) -> Path:
    """Return the directory of the embedded Postgres that `environ` names, else the usual one. Raises Misconfigured."""
    if named := environ.get("ESKER_DATA_DIR"):
        return expanded(Path(named)).absolute()
    shared = Path(environ.get("XDG_DATA_HOME", ""))
    if shared.is_absolute():
        return shared / "esker"
    return expanded(Path("~/Library/Application Support" if sys.platform == "darwin" else "~/.local/share")) / "esker"


def missing_home(folder: Path) -> Path | None:
    """Return the home directory if `folder` is in it and it does not exist; Esker does not make it.

    Raises OSError when it cannot be looked at.
    """
    try:
        above = home()
    except Misconfigured:
        return None  # `folder` was named, then
    try:
        above.stat()
    except FileNotFoundError:
        return above if folder.is_relative_to(above) else None
    return None


def unknown_home() -> Misconfigured:
    """Return the error for a process without a home directory."""
    given = os.environ.get("HOME")
    why = (
        f"HOME is {given!r}, which is not an absolute path"
        if given is not None
        else f"HOME is not set, and user id {os.geteuid()} has no entry in /etc/passwd"
    )
    return Misconfigured(
        f"The home directory is unknown: {why}.", hint="Set HOME to a directory in which Esker may write."
    )
