"""JSON from outside: hostile text is cleaned, hostile structure is refused.

Postgres cannot store a NUL or half a surrogate pair, and JSON can carry both. They are replaced, so that no message is
lost for them. Input that cannot be cleaned without guessing (broken syntax, extreme depth) is refused.
"""

import json
import math
import re
from typing import Any, NoReturn, TypeAlias, cast

from esker.server.core.errors import InvalidInput

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject = dict[str, Any]
"""A document whose fields the reader knows."""

MAX_DEPTH = 64
# The most digits of an integer: jsonb stores any number, but no client means more digits than this.
_MAX_DIGITS = 300
_REPLACEMENT = "\ufffd"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ESCAPED = re.compile(rb"\\u(?:d[89a-f]|0000)", re.IGNORECASE)
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def clean_text(text: str) -> str:
    """Return `text` with NUL bytes and lone surrogates replaced by U+FFFD; whole surrogate pairs are joined."""
    if not _UNSTORABLE.search(text):
        return text
    joined = _SURROGATE_PAIR.sub(_join_pair, text)
    return _UNSTORABLE.sub(_REPLACEMENT, joined)


def _join_pair(match: re.Match[str]) -> str:
    return match.group().encode("utf-16", "surrogatepass").decode("utf-16")


def parse_json(body: bytes) -> Json:
    """Parse a request body, cleaned. Raises InvalidInput for syntax, depth, or text that is not UTF-8."""
    try:
        value: Json = _DECODER.decode(body.decode("utf-8", "replace"))
    except RecursionError:
        raise InvalidInput(f"The JSON is nested more than {MAX_DEPTH} levels deep.") from None
    except ValueError as error:
        raise InvalidInput(f"The body is not valid JSON: {error}.") from None
    return clean_json(value)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


# Shared, since `json.loads` makes a new decoder for each call, and transcripts have very many lines.
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def clean_json(value: Json, depth: int = 0) -> Json:
    """Return `value` with every string and key cleaned; numbers that a database cannot store become strings.

    Raises InvalidInput when the value is nested more than MAX_DEPTH levels deep.
    """
    if depth > MAX_DEPTH:
        raise InvalidInput(f"The JSON is nested more than {MAX_DEPTH} levels deep.")
    match value:
        case str():
            return clean_text(value)
        case list():
            return [clean_json(item, depth + 1) for item in value]
        case dict():
            return {clean_text(key): clean_json(item, depth + 1) for key, item in value.items()}
        case float() if not math.isfinite(value):
            return str(value)
        case int() if not isinstance(value, bool) and abs(value) >= 10**_MAX_DIGITS:
            return str(value)
        case _:
            return value


def clean_document(document: bytes) -> bytes:
    """Return a JSON document cleaned, for parsers that would refuse it; a document that is not JSON is unchanged."""
    if not _ESCAPED.search(document):
        return document
    try:
        return json.dumps(parse_json(document)).encode()
    except InvalidInput:
        return document


def as_object(value: object) -> dict[str, Any]:
    """Return a JSON object, or an empty one for any other value."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def text_characters(content: Json) -> int:
    """Return the number of characters in the strings of content blocks, images left out."""
    match content:
        case {"type": "image", "source": {"type": "base64"}} if content.keys() <= {"type", "source", "cache_control"}:
            return 0
        case str():
            return len(content)
        case list():
            return sum(map(text_characters, content))
        case dict():
            return sum(len(key) + text_characters(item) for key, item in content.items())
        case _:
            return 0


def characters(value: Json) -> int:
    """Return the number of characters in the strings of a value, with its keys."""
    match value:
        case str():
            return len(value)
        case list():
            return sum(map(characters, value))
        case dict():
            return sum(len(key) + characters(item) for key, item in value.items())
        case _:
            return 0
