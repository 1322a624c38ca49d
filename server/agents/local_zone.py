"""The time zone of this machine, for servers on other machines."""

import os
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_ZONE_LINK = Path("/etc/localtime")
_ZONE_FILE = Path("/etc/timezone")
_FOLDER = "zoneinfo/"


def local_zone() -> str | None:
    """Return the name of this machine's time zone, or None if it cannot be determined."""
    return next((name for name in map(_known, (_from_environment(), _from_link(), _from_file())) if name), None)


def _from_environment() -> str:
    return os.environ.get("TZ", "").removeprefix(":")


def _from_link() -> str:
    return str(_ZONE_LINK.resolve()).partition(_FOLDER)[2]


def _from_file() -> str:
    try:
        return _ZONE_FILE.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _known(name: str) -> str | None:
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
