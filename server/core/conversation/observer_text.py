"""A message as text: for search, and shorter for an observer, with its cost in tokens."""

import json
import re
from collections.abc import Mapping, Sequence

from esker.server.core.conversation.blocks import images, looks_failed, name_and_reason, result_text
from esker.server.core.conversation.injected import strip_injected, strip_ours
from esker.server.core.conversation.memory_tools import writes_memory
from esker.server.core.conversation.records import Block, Role
from esker.server.core.json_input import Json
from esker.server.core.text.cutting import cut
from esker.server.core.text.tokens import IMAGE_TOKENS, estimate_tokens

TOOL_CHARACTERS = 1_500
"""Maximum characters of a tool's arguments or result in the text of a message."""
RESULT_CHARACTERS = 200
"""Maximum characters of a successful result that an observer is shown: the agent says what mattered in it."""

# Tools whose result is what a person answered; an observer is shown TOOL_CHARACTERS of it.
_ASKING_TOOL = re.compile(r"ask_?user|user_?input|ask_?question|exit_?plan|^question$", re.IGNORECASE)

# Upper estimate for the line before a message (number, role, time) and the line that marks a silence before it.
_HEADING_TOKENS = 28


def message_text(role: Role, blocks: Sequence[Block], names: Mapping[str, str]) -> str:
    """Return the text of a message that is stored and searched.

    Text is kept; injected context, our own memory and thinking are removed; tool calls and results become one line
    each. `names` is the result of `tool_names`.
    """
    return _text(role, blocks, names, TOOL_CHARACTERS)


def observer_text(role: Role, blocks: Sequence[Block], names: Mapping[str, str]) -> str:
    """Return a message as an observer sees it: the same text with shorter results of tools that succeeded."""
    return _text(role, blocks, names, RESULT_CHARACTERS)


def _text(role: Role, blocks: Sequence[Block], names: Mapping[str, str], most: int) -> str:
    if role == "system":
        return ""
    parts = (_part(role, block, names, most) for block in blocks)
    return "\n".join(part for part in parts if part)


def _part(role: Role, block: Block, names: Mapping[str, str], most: int) -> str:
    match block:
        case {"type": "text", "text": str(text)} if role == "tool":
            shown = _cut_result(strip_injected(text), most)
            return f"[toolResult: {shown}]" if shown else ""
        case {"type": "text", "text": str(text)}:
            return strip_injected(text)
        case {"type": "image"}:
            return "[image]"
        case {"type": "tool_use", "name": str(name)}:
            return f"[toolCall {name}({_arguments(name, block.get('input', {}))})]"
        case {"type": "tool_result"}:
            return _result_line(block, names.get(str(block.get("tool_use_id")), ""), most)
        case {"type": "thinking" | "redacted_thinking"}:
            return ""
        case _:
            return f"[{block['type']}]"


def _arguments(name: str, given: Json) -> str:
    if writes_memory(name, given):
        return "for memory, left out"
    return cut(json.dumps(strip_ours(given), ensure_ascii=False), TOOL_CHARACTERS)


def _result_line(block: Block, name: str, most: int) -> str:
    tool, reason = name_and_reason(name)
    failed = bool(block.get("is_error"))
    label = " ".join(["toolResult", *([tool] if tool else []), *(["(error)"] if failed else [])])
    if reason:
        return f"[{label}: {reason}, left out]"
    text = result_text(block)
    return (
        f"[{label}: {cut(text, TOOL_CHARACTERS) if failed or _ASKING_TOOL.search(tool) else _cut_result(text, most)}]"
    )


def _cut_result(text: str, most: int) -> str:
    """Cut output that is not marked as an error; it keeps TOOL_CHARACTERS if it shows a failure."""
    return cut(text, TOOL_CHARACTERS if looks_failed(text) else most)


def shown_tokens(text: str, blocks: Sequence[Block]) -> int:
    """Return the tokens that a message costs an observer: its heading, its observer text and its images.

    0 for a message without text and images, which is not shown.
    """
    pictures = len(images(blocks))
    return _HEADING_TOKENS + estimate_tokens(text) + IMAGE_TOKENS * pictures if text or pictures else 0
