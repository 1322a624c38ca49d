"""Masks secrets before anything is stored, hashed, embedded, logged or shown to a model.

Known formats are data (`formats.toml`); all other secrets are recognised by their place: behind the name of a secret
(`server/core/words/secrets.toml`), in a header, an address, a command or a file of a known form. A mask names the kind
of the secret and contains no part of its value. Masking twice changes nothing.
"""

import hashlib

from esker.server.core.json_input import clean_text
from esker.server.core.redaction.finding import find
from esker.server.core.redaction.spans import RANDOM, UNKNOWN, Span, masked
from esker.server.core.redaction.structure import redact, redact_content, redact_json

__all__ = ["error_text", "find", "redact", "redact_content", "redact_json", "redact_name"]

_LONGEST_NAME = 400
_LONGEST_ERROR = 500


def redact_name(name: str) -> str:
    """Return a client's own name for a thing, redacted; a hash is appended, so that different names stay different.

    Ids are often a prefix before small letters and digits: that alone makes no token of a name.
    """
    secrets = [span for span in find(name) if not _may_be_id(name[span.start : span.end], span)]
    if not secrets:
        return name
    return f"{redact(masked(name, secrets))[:_LONGEST_NAME]}#{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def _may_be_id(text: str, span: Span) -> bool:
    return span.kind == RANDOM or (span.kind == UNKNOWN and (text.islower() or text.isupper()))


def error_text(error: Exception) -> str:
    """Return an error's message, masked and truncated: it may contain text from users or other programs."""
    return redact(clean_text(str(error)[:_LONGEST_ERROR]))
