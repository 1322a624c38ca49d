"""Content blocks of the Messages API: what is valid, what they cost, what an observer sees."""

import json
from collections.abc import Mapping, Sequence

from server.core.errors import InvalidInput
from server.core.injected import is_memory_tool, strip_injected
from server.core.json_input import Json
from server.core.records import Block, Role
from server.core.tokens import IMAGE_TOKENS, estimate_tokens

TOOL_CHARACTERS = 1_500
"""How much of a tool's arguments or result an observer is shown."""

# The number, the role and the time of a message.
_HEADING_TOKENS = 16

_REQUIRED: dict[str, tuple[str, type]] = {
    "text": ("text", str),
    "thinking": ("thinking", str),
    "image": ("source", dict),
    "tool_use": ("name", str),
}


def as_blocks(content: Json) -> list[Block]:
    """Return message content as a list of blocks; a plain string becomes one text block.

    A block of a type that we do not know is kept as it is. Raises InvalidInput for anything that is not a block.
    """
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise InvalidInput("content must be a string or a list of blocks.")
    return [_valid_block(block, place) for place, block in enumerate(content)]


def _valid_block(block: Json, place: int) -> Block:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        raise InvalidInput(f"content[{place}] must be an object with a 'type'.")
    field, kind = _REQUIRED.get(str(block["type"]), ("type", str))
    if not isinstance(block.get(field), kind):
        raise InvalidInput(f"content[{place}] is a {block['type']} block without a proper '{field}'.")
    return block


def content_tokens(blocks: Sequence[Block]) -> int:
    """Return what the blocks cost a model, images at a flat rate; never less than 1."""
    return max(1, sum(_block_tokens(block) for block in blocks))


def _block_tokens(block: Block) -> int:
    match block:
        case {"type": "image"}:
            return IMAGE_TOKENS
        case {"type": "text", "text": str(text)} | {"type": "thinking", "thinking": str(text)}:
            return estimate_tokens(text)
        case {"type": "tool_result", "content": list(parts)}:
            return sum(_block_tokens(part) for part in parts if isinstance(part, dict))
        case {"type": "tool_result", "content": str(text)}:
            return estimate_tokens(text)
        case _:
            return estimate_tokens(json.dumps(block, ensure_ascii=False))


def tool_names(blocks: Sequence[Block]) -> dict[str, str]:
    """Return the names of the tools that these blocks call, by the id of the call."""
    return {
        str(block["id"]): str(block["name"])
        for block in blocks
        if block.get("type") == "tool_use" and isinstance(block.get("id"), str)
    }


def result_ids(blocks: Sequence[Block]) -> set[str]:
    """Return the ids of the tool calls whose results these blocks hold."""
    return {
        str(block["tool_use_id"])
        for block in blocks
        if block.get("type") == "tool_result" and isinstance(block.get("tool_use_id"), str)
    }


def is_spoken(blocks: Sequence[Block]) -> bool:
    """Tell whether a message holds words or images of whoever sent it, and not only what tools answered."""
    return any(block.get("type") not in ("tool_result", "text") for block in blocks) or bool(spoken(blocks))


def observer_text(role: Role, blocks: Sequence[Block], names: Mapping[str, str]) -> str:
    """Return a message as an observer sees it.

    Text stays, injected context and our own memory are taken out, tool calls and results become one line each,
    thinking is dropped. `names` gives the tool names by call id.
    """
    if role == "system":
        return ""
    parts = (_observer_part(role, block, names) for block in blocks)
    return "\n".join(part for part in parts if part)


def _observer_part(role: Role, block: Block, names: Mapping[str, str]) -> str:
    match block:
        case {"type": "text", "text": str(text)} if role == "tool":
            return f"[toolResult: {cut(text.strip(), TOOL_CHARACTERS)}]"
        case {"type": "text", "text": str(text)}:
            return strip_injected(text)
        case {"type": "image"}:
            return "[image]"
        case {"type": "tool_use", "name": str(name)}:
            arguments = json.dumps(block.get("input", {}), ensure_ascii=False)
            return f"[toolCall {name}({cut(arguments, TOOL_CHARACTERS)})]"
        case {"type": "tool_result"}:
            return _result_line(block, names.get(str(block.get("tool_use_id")), ""))
        case {"type": "thinking" | "redacted_thinking"}:
            return ""
        case _:
            return f"[{block['type']}]"


def _result_line(block: Block, name: str) -> str:
    label = " ".join(["toolResult", *([name] if name else []), *(["error"] if block.get("is_error") else [])])
    if is_memory_tool(name):
        return f"[{label}: from memory, left out]"
    return f"[{label}: {cut(result_text(block), TOOL_CHARACTERS)}]"


def result_text(block: Block) -> str:
    """Return the text of a tool result, with images named and injected context taken out."""
    content = block.get("content")
    if isinstance(content, str):
        return strip_injected(content)
    parts = content if isinstance(content, list) else []
    texts = (
        "[image]" if part.get("type") == "image" else str(part.get("text", ""))
        for part in parts
        if isinstance(part, dict)
    )
    return strip_injected("\n".join(texts))


def spoken(blocks: Sequence[Block]) -> str:
    """Return the words of a message: its text blocks without injected context."""
    texts = (strip_injected(str(block["text"])) for block in blocks if block.get("type") == "text")
    return "\n".join(text for text in texts if text)


def images(blocks: Sequence[Block]) -> list[Json]:
    """Return the sources of the images that a model can be shown, those inside tool results included."""
    found: list[Json] = []
    for block in blocks:
        match block:
            case {"type": "image", "source": {"type": "base64" | "url"} as source}:
                found.append(source)
            case {"type": "tool_result", "content": list(parts)}:
                found += images([part for part in parts if isinstance(part, dict)])
            case _:
                pass
    return found


def shown_tokens(text: str, blocks: Sequence[Block]) -> int:
    """Return what it costs to show an observer a message: its heading, its observer text and its images.

    A message that says nothing is not shown.
    """
    pictures = len(images(blocks))
    return _HEADING_TOKENS + estimate_tokens(text) + IMAGE_TOKENS * pictures if text or pictures else 0


def cut(text: str, limit: int) -> str:
    """Return `text`, or its first `limit` characters up to the last space and a note of how much is missing."""
    if len(text) <= limit:
        return text
    head = text[:limit]
    space = head.rfind(" ", limit - 80)
    head = head[:space] if space > 0 else head
    return f"{head} … [{len(text) - len(head):,} more characters]"
