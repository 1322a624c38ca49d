"""Text in base64 that a secret may be in."""

import base64
import binascii
import re
from collections.abc import Iterator

from esker.server.core.redaction.scan import Scan

_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}+={0,2}")
_WORDS = re.compile(rb"[\t\n\r -~]+")
# Characters that are decoded first: those of images and other data are seldom all printable.
_TRIED = 24
_LONGEST = 65_536


def decoded(scan: Scan) -> Iterator[tuple[int, int, str]]:
    """Yield the places of text in base64, with the text."""
    for start, word in scan.long_words:
        for found in _BASE64.finditer(word) if len(word) >= _TRIED else ():
            plain = _plain(found[0][:_TRIED]) and _plain(found[0][:_LONGEST])
            if plain:
                yield start + found.start(), start + found.end(), plain


def _plain(word: str) -> str | None:
    try:
        data = base64.b64decode(word.rstrip("=").translate(_STANDARD) + "=" * (-len(word.rstrip("=")) % 4))
    except binascii.Error:
        return None
    return data.decode("ascii") if _WORDS.fullmatch(data) else None


_STANDARD = str.maketrans("-_", "+/")
