"""The content blocks of a message as the page shows them; clients may send them in any form."""

import json
from collections.abc import Mapping

from esker.server.core.json_input import Json

_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def picture(block: Json) -> str | None:
    """Return the address of an image that contains its data; None for a block of another kind or form."""
    match block:
        case {
            "type": "image",
            "source": {"type": "base64", "media_type": str(media_type), "data": str(data)},
        } if media_type in _PICTURES:
            return f"data:{media_type};base64,{data}"
        case _:
            return None


def result_parts(block: Mapping[str, Json]) -> list[Json]:
    """Return the parts of a tool's result: a text, or the blocks of a list."""
    content = block.get("content")
    if isinstance(content, list):
        return list(content)
    return [] if content in (None, "") else [content]


def part_text(part: Json) -> str:
    """Return the words of a part of a tool's result; of one without words its type, else its JSON."""
    match part:
        case str(text) | {"text": str(text)} if text:
            return text
        case {"type": str(kind)}:
            return f"[{kind}]"
        case _:
            return json.dumps(part, ensure_ascii=False)
