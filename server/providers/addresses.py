"""Checks the URLs of endpoints in settings."""

from urllib.parse import urlsplit


def is_plain(url: str) -> bool:
    """Whether a URL is an http(s) URL without credentials."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None and not parts.query
