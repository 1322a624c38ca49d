"""Addresses of endpoints that settings name."""

from urllib.parse import urlsplit


def is_plain(url: str) -> bool:
    """Whether a URL is one of a web server, without credentials."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None and not parts.query
