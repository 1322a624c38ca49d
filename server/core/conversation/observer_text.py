"""A message as an observer is shown it, tool calls and results cut to one line each, and its cost in tokens."""

import json
from collections.abc import Mapping, Sequence

from esker.server.core.conversation.blocks import images, name_and_reason, result_text
from esker.server.core.conversation.injected import strip_injected, strip_ours
from esker.server.core.conversation.memory_tools import writes_memory
from esker.server.core.conversation.records import Block, Role
from esker.server.core.json_input import Json
from esker.server.core.text.cutting import cut
from esker.server.core.text.tokens import IMAGE_TOKENS, estimate_tokens

TOOL_CHARACTERS = 1_500
"""Maximum characters of a tool's arguments or result that an observer is shown."""

# Upper estimate for the line before a message (number, role, time) and the line that marks a silence before it.
_HEADING_TOKENS = 28


def observer_text(role: Role, blocks: Sequence[Block], names: Mapping[str, str]) -> str:
    """Return a message as an observer sees it.

    Text is kept; injected context, our own memory and thinking are removed; tool calls and results become one line
    each. `names` is the result of `tool_names`.
    """
    if role == "system":
        return ""
    parts = (_observer_part(role, block, names) for block in blocks)
    return "\n".join(part for part in parts if part)


def _observer_part(role: Role, block: Block, names: Mapping[str, str]) -> str:
    match block:
        case {"type": "text", "text": str(text)} if role == "tool":
            shown = cut(strip_injected(text), TOOL_CHARACTERS)
            return f"[toolResult: {shown}]" if shown else ""
        case {"type": "text", "text": str(text)}:
            return strip_injected(text)
        case {"type": "image"}:
            return "[image]"
        case {"type": "tool_use", "name": str(name)}:
            return f"[toolCall {name}({_arguments(name, block.get('input', {}))})]"
        case {"type": "tool_result"}:
            return _result_line(block, names.get(str(block.get("tool_use_id")), ""))
        case {"type": "thinking" | "redacted_thinking"}:
            return ""
        case _:
            return f"[{block['type']}]"


def _arguments(name: str, given: Json) -> str:
    if writes_memory(name, given):
        return "for memory, left out"
    return cut(json.dumps(strip_ours(given), ensure_ascii=False), TOOL_CHARACTERS)


def _result_line(block: Block, name: str) -> str:
    tool, reason = name_and_reason(name)
    label = " ".join(["toolResult", *([tool] if tool else []), *(["(error)"] if block.get("is_error") else [])])
    if reason:
        return f"[{label}: {reason}, left out]"
    return f"[{label}: {cut(result_text(block), TOOL_CHARACTERS)}]"


def shown_tokens(text: str, blocks: Sequence[Block]) -> int:
    """Return the tokens that a message costs an observer: its heading, its observer text and its images.

    0 for a message without text and images, which is not shown.
    """
    pictures = len(images(blocks))
    return _HEADING_TOKENS + estimate_tokens(text) + IMAGE_TOKENS * pictures if text or pictures else 0
