"""Content blocks of the Messages API: their cost in tokens, their words, images, tool calls and results."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence

from esker.server.core.conversation.injected import strip_injected
from esker.server.core.conversation.memory_tools import WithheldReason, is_memory_tool, withheld
from esker.server.core.conversation.records import Block, Role
from esker.server.core.ids import memory_ids_in
from esker.server.core.json_input import Json
from esker.server.core.text.tokens import IMAGE_TOKENS, estimate_tokens

_REASONS: tuple[WithheldReason, ...] = ("rules file", "from memory")
_FAILURE = re.compile(r"^Traceback \(most recent call last\)|[Ee]xit code:? [1-9]|^FAILED |npm ERR!", re.MULTILINE)


def content_hash(role: Role, blocks: Sequence[Block]) -> bytes:
    """Return a hash by which a message that is sent again is recognised."""
    return hashlib.sha256(json.dumps([role, blocks], sort_keys=True).encode()).digest()


def content_tokens(blocks: Sequence[Block]) -> int:
    """Return the tokens that the blocks cost a model, images at a flat rate; at least 1."""
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
    """Return the names of the tools that these blocks call, by the id of the call.

    If the result of a call is withheld, the reason follows the name: `Read (rules file)`, `Bash (from memory)`.
    """
    return {
        str(block["id"]): _name_of_call(str(block["name"]), block.get("input"))
        for block in blocks
        if block.get("type") == "tool_use" and isinstance(block.get("id"), str)
    }


def _name_of_call(name: str, arguments: Json) -> str:
    reason = None if is_memory_tool(name) else withheld(name, arguments)
    return f"{name} ({reason})" if reason else name


def name_and_reason(name: str) -> tuple[str, WithheldReason | None]:
    """Split a name that `tool_names` returned into the tool's name and the reason why its result is withheld."""
    for reason in _REASONS:
        if name.endswith(f" ({reason})"):
            return name.removesuffix(f" ({reason})"), reason
    return name, "from memory" if is_memory_tool(name) else None


def recalled_ids(blocks: Sequence[Block], names: Mapping[str, str]) -> list[str]:
    """Return the memory ids in results of memory tools; ids in the results of other tools do not count.

    `names` is the result of `tool_names`.
    """
    results = [
        block.get("content")
        for block in blocks
        if block.get("type") == "tool_result"
        and name_and_reason(names.get(str(block.get("tool_use_id")), ""))[1] == "from memory"
    ]
    return memory_ids_in(json.dumps(results)) if results else []


def result_ids(blocks: Sequence[Block]) -> set[str]:
    """Return the ids of the tool calls whose results these blocks contain."""
    return {
        str(block["tool_use_id"])
        for block in blocks
        if block.get("type") == "tool_result" and isinstance(block.get("tool_use_id"), str)
    }


def is_spoken(blocks: Sequence[Block]) -> bool:
    """Whether a message contains words or images of its sender, and not only tool results."""
    return any(block.get("type") not in ("tool_result", "text") for block in blocks) or bool(spoken(blocks))


def result_text(block: Block) -> str:
    """Return the text of a tool result without injected context; an image becomes `[image]`."""
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


def looks_failed(output: str) -> bool:
    """Whether output that is not marked as an error shows a failure: a traceback, an exit code, a failed test."""
    return bool(_FAILURE.search(output))


def spoken(blocks: Sequence[Block]) -> str:
    """Return the words of a message: its text blocks without injected context."""
    texts = (strip_injected(str(block["text"])) for block in blocks if block.get("type") == "text")
    return "\n".join(text for text in texts if text)


def images(blocks: Sequence[Block]) -> list[Json]:
    """Return the sources of the images that a model can be shown, including those inside tool results."""
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
