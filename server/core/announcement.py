"""The first JSON document that a server prints: where it listens, or why it did not start."""

import json
from collections.abc import Iterable
from typing import Any

from esker.server.core.errors import Unavailable
from esker.server.core.json_input import as_object

_LONGEST_QUOTE = 500  # characters of unexpected output that an error repeats


def read_announcement(lines: Iterable[str]) -> dict[str, Any]:
    """Return the document with which a started server says where it listens; its `url` is a text.

    `lines` are those of its standard output. Lines before the document are skipped.
    Raises Unavailable, with the server's own message and hint, when it did not start.
    """
    text = ""
    for line in lines:
        text = line if line.startswith("{") else text + line
        if (document := _parsed(text)) is not None:
            return _checked(document, text)
    raise _not_started(text)


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _checked(document: object, text: str) -> dict[str, Any]:
    found = as_object(document)
    if isinstance(found.get("url"), str):
        return found
    if isinstance(found.get("error"), str):
        hint = found.get("hint")
        raise Unavailable(found["error"], hint=hint if isinstance(hint, str) else None)
    raise _not_started(text)


def _not_started(text: str) -> Unavailable:
    printed = f" It printed: {text.strip()[:_LONGEST_QUOTE]}" if text.strip() else ""
    return Unavailable(f"The server did not start.{printed}", hint="Its error, if it gave one, is above.")
