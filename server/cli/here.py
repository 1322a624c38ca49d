"""What this machine tells about itself, for servers that are elsewhere."""

from tzlocal import get_localzone_name


def local_zone() -> str | None:
    """Return the name of this machine's time zone, or None where it has none."""
    try:
        return get_localzone_name()
    except (LookupError, ValueError, OSError):
        return None
