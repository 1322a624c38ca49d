"""Message content of the clients, converted to the blocks that the server accepts."""

import json
from collections.abc import Iterator

from esker.server.core.errors import InvalidInput
from esker.server.core.json_input import Json, parse_json

Block = dict[str, Json]

_TEXT_KEYS = ("text", "content", "output", "error", "message", "refusal")


def text_block(text: str) -> Block:
    """Return a text block."""
    return {"type": "text", "text": text}


def call_block(call: str, name: Json, given: Json) -> Block:
    """Return a tool call; `given` are its arguments, as an object or as JSON text."""
    called = name if isinstance(name, str) else "tool"
    return {"type": "tool_use", "id": call, "name": called, "input": arguments(given)}


def result_block(call: str, content: Json, *, failed: bool = False) -> Block:
    """Return the result of a tool: text, or blocks of text and images."""
    block: Block = {"type": "tool_result", "tool_use_id": call, "content": content}
    return block | {"is_error": True} if failed else block


def image_block(data: Json, media_type: Json) -> Block | None:
    """Return an image block for base64 data, or None if it is not an image."""
    if not (isinstance(data, str) and data and isinstance(media_type, str) and media_type.startswith("image/")):
        return None
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def image_at(url: Json) -> Block | None:
    """Return an image block for an address or a data URL, or None if it is neither."""
    if not isinstance(url, str):
        return None
    if url.startswith("data:"):
        kind, _, data = url.removeprefix("data:").partition(";base64,")
        return image_block(data, kind)
    return {"type": "image", "source": {"type": "url", "url": url}} if url.startswith(("https://", "http://")) else None


def arguments(given: Json) -> Json:
    """Return the arguments of a call as an object, whatever their type; some providers write none as an empty text."""
    if isinstance(given, str):
        if not given.strip():
            return {}
        try:
            given = parse_json(given.encode("utf-8", "replace"))
        except InvalidInput:
            return {"input": given}
    if isinstance(given, dict):
        return given
    return {} if given is None else {"input": given}


def texts(value: Json) -> Iterator[str]:
    """Yield the texts of content or of a result: strings, and the texts of parts at any depth."""
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from texts(item)
        case dict():
            yield from texts(next((value[key] for key in _TEXT_KEYS if value.get(key)), None))
        case _:
            pass


def joined(value: Json) -> str:
    """Return the texts of a value, a line break between two."""
    return "\n".join(texts(value))


def result_text(value: Json) -> str:
    """Return a tool's result as text: its texts, or if it has none the value as JSON, without images."""
    text = joined(value)
    if text.strip() or not value or isinstance(value, str):
        return text
    shown = _without_images(value)
    return joined(shown) or json.dumps(shown, ensure_ascii=False)


def _without_images(value: Json) -> Json:
    match value:
        case {"type": str(kind)} if "image" in kind:
            return "[image]"
        case dict():
            return {key: _without_images(item) for key, item in value.items()}
        case list():
            return [_without_images(item) for item in value]
        case _:
            return value


def as_text(value: Json) -> str | None:
    """Return a string that is not blank, stripped, or None."""
    return value.strip() or None if isinstance(value, str) else None


def as_list(value: Json) -> list[Json]:
    """Return a list; an empty one for anything else."""
    return value if isinstance(value, list) else []
