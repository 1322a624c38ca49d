"""The project that a directory belongs to."""

import re
from configparser import ConfigParser, Error
from pathlib import Path, PurePosixPath, PureWindowsPath

_NAME = re.compile(r"([^/:\\]+/[^/:\\]+?)(?:\.git)?/?$")


def project_of(cwd: str) -> str | None:
    """Return the project of a directory: its git remote's owner/name, else its git root's name, else its own name,
    or None.

    A directory that is not on this machine is named after its last part.
    """
    if Path(cwd).is_absolute():
        for directory in (Path(cwd), *Path(cwd).parents):
            if _is_repository(directory):
                return _remote(directory / ".git" / "config") or directory.name or None
    return (PureWindowsPath(cwd) if "\\" in cwd else PurePosixPath(cwd)).name or None


def _is_repository(directory: Path) -> bool:
    try:
        return (directory / ".git").exists()
    except OSError:  # it may be another machine's, or not ours to look into
        return False


def _remote(config: Path) -> str | None:
    parser = ConfigParser(strict=False, interpolation=None)
    try:
        parser.read(config, encoding="utf-8")
        found = _NAME.search(parser.get('remote "origin"', "url", fallback=""))
    except (Error, OSError, UnicodeDecodeError):
        return None
    return found[1] if found else None
