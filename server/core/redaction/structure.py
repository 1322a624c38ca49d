"""Masks secrets in JSON values and in the content of messages."""

import re

from esker.server.core.json_input import Json
from esker.server.core.redaction.finding import find
from esker.server.core.redaction.names import Strength, strength_of
from esker.server.core.redaction.patterns import Pattern
from esker.server.core.redaction.spans import GENERIC, MASK, RANDOM, UNKNOWN, masked, masks_of
from esker.server.core.redaction.values import SHORTEST, Form, is_placeholder, is_secret

# A text that was masked may show another secret: the second look finds hardly ever one, and the third none.
_MOST_LOOKS = 4
_TEXT_MEDIA = Pattern(r"text/|application/(?:json|xml|yaml|x-)")
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]*={0,2}\s*")
# Shorter data is looked through: it is a token that was called an image rather than an image.
_SHORTEST_DATA = 200
# Members of a block that hold an id.
_IDS = frozenset(("id", "tool_use_id", "call_id"))
_COUNT = Pattern(r"[\d\s.,kKmM]*")


def redact(text: str) -> str:
    """Return `text` with every secret that is recognised replaced by `[redacted:<kind>]`."""
    spans = find(text)
    for _ in range(_MOST_LOOKS - 1):
        changed = masked(text, spans) if spans else text
        if changed == text:
            break
        text, spans = changed, find(changed, masks_of(spans))
    return masked(text, spans)


def redact_json(value: Json) -> Json:
    """Return `value` with every string redacted, and with the values of members that have the name of a secret."""
    match value:
        case str():
            return redact(value)
        case list():
            return _redact_list(value)
        case dict():
            return {redact(key): _redact_member(key, item) for key, item in value.items()}
        case _:
            return value


def redact_content(value: Json) -> Json:
    """Return the content of a message, redacted; the data of its images and documents is left alone."""
    if isinstance(value, list):
        return [_redact_block(block) for block in value]
    return _redact_block(value)


def _redact_block(block: Json) -> Json:
    match block:
        case {"type": "image" | "document", "source": {"type": "base64", "data": str(data)} as source} if _is_data(
            source, data
        ):
            rest: dict[str, Json] = {key: item for key, item in source.items() if key != "data"}
            others = redact_json({key: item for key, item in block.items() if key != "source"})
            return {**_object(others), "source": {**_object(redact_json(rest)), "data": data}}
        case {"type": "tool_result", "content": list(content)}:
            others = _redact_block({key: item for key, item in block.items() if key != "content"})
            return {**_object(others), "content": redact_content(content)}
        case {"type": str()}:
            return {
                redact(key): redact_id(item) if key in _IDS else _redact_member(key, item)
                for key, item in block.items()
            }
        case _:
            return redact_json(block)


def redact_id(value: Json) -> Json:
    """Return the id of a call or an item, redacted: ids look like tokens of unknown makers, and must stay different."""
    if not isinstance(value, str):
        return redact_json(value)
    return masked(value, [span for span in find(value) if span.kind not in (UNKNOWN, RANDOM)])


def _object(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _is_data(source: dict[str, Json], data: str) -> bool:
    """Whether base64 holds an image or a document, and not a text that someone called base64."""
    if _TEXT_MEDIA.match(str(source.get("media_type", ""))) or not _BASE64.fullmatch(data):
        return False
    return len(data) >= _SHORTEST_DATA or not find(data)


def _redact_list(items: list[Json]) -> Json:
    """Redact a list; an item behind the name of an option, as in a list of arguments, is the option's value."""
    redacted: list[Json] = []
    before = ""
    for item in items:
        if isinstance(item, str) and before.startswith("-") and not item.startswith("-"):
            redacted.append(_redact_member(before, item))
        else:
            redacted.append(redact_json(item))
        before = item if isinstance(item, str) else ""
    return redacted


def _redact_member(key: str, item: Json) -> Json:
    if isinstance(item, list) and strength_of(key) >= Strength.TOKEN:
        return [_redact_member(key, part) for part in item]
    if not isinstance(item, str):
        return redact_json(item)
    return f"{MASK}{GENERIC}]" if _is_secret_member(key, item) else _redact_behind(key, item)


def _is_secret_member(key: str, item: str) -> bool:
    strength = strength_of(key)
    if strength < Strength.TOKEN:
        return strength is Strength.KEY and is_secret(item, strength, Form.QUOTED)
    counts = " " in item and strength is Strength.TOKEN
    return len(item) >= SHORTEST and not is_placeholder(item) and not counts and not _COUNT.fullmatch(item)


def _redact_behind(key: str, item: str) -> str:
    """Redact a text that a header's or a variable's name says more about, such as `Cookie`."""
    named = f"{key}: "
    redacted = redact(named + item) if len(key) <= 60 else item
    return redacted.removeprefix(named) if redacted.startswith(named) else redact(item)
