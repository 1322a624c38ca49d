"""Validation of message content: a string, or content blocks of the Messages API.

Separate from `blocks.py` because transcript readers validate in hooks, which must start fast.
"""

from esker.server.core.errors import InvalidInput
from esker.server.core.json_input import Json

_REQUIRED: dict[str, tuple[str, type]] = {
    "text": ("text", str),
    "thinking": ("thinking", str),
    "image": ("source", dict),
    "tool_use": ("name", str),
}


def as_blocks(content: Json) -> list[dict[str, Json]]:
    """Return message content as a list of blocks; a plain string becomes one text block.

    A block of an unknown type is kept as it is. Raises InvalidInput for anything that is not a block.
    """
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise InvalidInput("content must be a string or a list of blocks.")
    return [_valid_block(block, place) for place, block in enumerate(content)]


def _valid_block(block: Json, place: int) -> dict[str, Json]:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        raise InvalidInput(f"content[{place}] must be an object with a 'type'.")
    field, kind = _REQUIRED.get(str(block["type"]), ("type", str))
    if not isinstance(block.get(field), kind):
        raise InvalidInput(f"content[{place}] is a {block['type']} block without a proper '{field}'.")
    return block
