"""What this machine tells about itself, for servers that are elsewhere."""

import os
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_LINK = Path("/etc/localtime")
_NAME = Path("/etc/timezone")
_FOLDER = "zoneinfo/"


def local_zone() -> str | None:
    """Return the name of this machine's time zone, or None where it does not tell."""
    return next((name for name in map(_known, (_by_variable(), _by_link(), _by_name())) if name), None)


def _by_variable() -> str:
    return os.environ.get("TZ", "").removeprefix(":")


def _by_link() -> str:
    return str(_LINK.resolve()).partition(_FOLDER)[2]


def _by_name() -> str:
    try:
        return _NAME.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _known(name: str) -> str | None:
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
