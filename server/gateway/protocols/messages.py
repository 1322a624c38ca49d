"""Anthropic's Messages API: `POST /v1/messages`."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from esker.server.agents.content import Block, arguments, as_list, as_text
from esker.server.core.context.prefix import MOST_BREAKPOINTS
from esker.server.core.json_input import Json, JsonObject, as_object
from esker.server.core.records import TokenUse
from esker.server.gateway.counts import count_of, index_of
from esker.server.gateway.json_spans import Span, items, members, replaced, with_item, with_member
from esker.server.gateway.records import Conversation, Event, ModelAnswer, Protocol, Turn

# The members of a request with breakpoints: those before the pack, and those behind it.
_PLACES = (("tools", "system"), ("messages",))
# The messages among which clients set their breakpoints of the conversation.
_LAST_MESSAGES = 4
_EPHEMERAL: Block = {"type": "ephemeral"}


def read_request(document: JsonObject) -> Conversation:
    """Return the conversation of a request."""
    turns = [
        Turn("assistant" if each.get("role") == "assistant" else "user", _blocks(each.get("content")), item)
        for item, each in enumerate(map(as_object, as_list(document.get("messages"))))
        # Clients speak as `system` in the middle of a conversation.
        if each.get("role") in ("user", "assistant")
    ]
    instructions = [
        str(block.get("text", ""))
        for each in (document, *map(as_object, as_list(document.get("messages"))))
        for block in _blocks(each.get("system") or (each.get("content") if each.get("role") == "system" else None))
    ]
    return Conversation(as_text(document.get("model")), turns, bool(as_list(document.get("tools"))), instructions)


def with_pack(text: str, pack: str) -> str | None:
    """Return a request with the pack in its system prompt, where a breakpoint of the client covers it.

    If the client marks its conversation, too, the pack stands behind the last block with a breakpoint: another pack
    then leaves the prompt before it in the cache. Else it stands before that block, but behind the first one, where
    providers look for the client's name.
    """
    found = members(text)
    block: Block = {"type": "text", "text": pack}
    if "messages" not in found:
        return None
    system = found.get("system")
    if system is None or system.value is None:
        marked = block | _breakpoint(found)
        return with_member(text, 0, "system", [marked]) if system is None else _replaced_json(text, system, [marked])
    if isinstance(system.value, str):
        own = text[system.start : system.end]
        written = json.dumps(block | _breakpoint(found), ensure_ascii=False)
        own_block = f'{{"type":"text","text":{own}}},' if system.value else ""
        return replaced(text, system, f"[{own_block}{written}]")
    if not isinstance(system.value, list):
        return None
    marks = [place for place, each in enumerate(items(text, system.start)) if "cache_control" in as_object(each.value)]
    if marks and _is_marked(found):
        return with_item(text, system.start, marks[-1] + 1, block)
    if marks:
        return with_item(text, system.start, max(1, marks[-1]), block)
    return with_item(text, system.start, len(system.value), block | _breakpoint(found))


def _is_marked(found: Mapping[str, Span]) -> bool:
    """Return whether a breakpoint covers the conversation: clients mark one of its last messages, or the request."""
    return "cache_control" in found or any(_marks(as_list(found["messages"].value)[-_LAST_MESSAGES:]))


def _breakpoint(found: Mapping[str, Span]) -> Block:
    """Return a cache breakpoint for a block, unless the client has set as many as the API accepts.

    It lasts an hour if a later one does: the API refuses a longer time behind a shorter one. `cache_control` of the
    request itself is the breakpoint that the API sets at the end.
    """
    before, behind = ([*_marks([found[name].value for name in part if name in found])] for part in _PLACES)
    if "cache_control" in found and (own := as_object(found["cache_control"].value)):
        behind.append(own)
    if len(before) + len(behind) >= MOST_BREAKPOINTS:
        return {}
    lasting = {"ttl": "1h"} if any(mark.get("ttl") == "1h" for mark in behind) else {}
    return {"cache_control": _EPHEMERAL | lasting}


def _marks(value: Json) -> Iterator[JsonObject]:
    """Yield the cache breakpoints in blocks."""
    match value:
        case list():
            for each in value:
                yield from _marks(each)
        case dict():
            if "cache_control" in value:
                yield as_object(value["cache_control"])
            yield from _marks(value.get("content"))
        case _:
            pass


def _replaced_json(text: str, span: Span, value: Json) -> str:
    return replaced(text, span, json.dumps(value, ensure_ascii=False))


def read_answer(document: JsonObject) -> ModelAnswer:
    """Return the answer of a request without streaming."""
    return _answer(document, _blocks(document.get("content")), as_object(document.get("usage")), whole=True)


def read_events(events: Iterable[Event]) -> ModelAnswer:
    """Return the answer that a stream contains."""
    begun: JsonObject = {}
    used: JsonObject = {}
    blocks: dict[int, Block] = {}
    inputs: dict[int, str] = {}
    ended = False
    for name, data in events:
        index = index_of(data)
        if name == "message_start":
            begun = as_object(data.get("message"))
            used = {**as_object(begun.get("usage"))}
        elif name == "content_block_start":
            blocks[index] = {**as_object(data.get("content_block"))}
        elif name == "content_block_delta":
            extend_block(blocks.setdefault(index, {"type": "text"}), as_object(data.get("delta")), inputs, index)
        elif name == "message_delta":
            used |= {key: value for key, value in as_object(data.get("usage")).items() if value is not None}
        ended = ended or name == "message_stop"
    for index, written in inputs.items():
        blocks[index]["input"] = arguments(written)
    return _answer(begun, [blocks[index] for index in sorted(blocks)], used, whole=ended)


def extend_block(block: Block, delta: JsonObject, inputs: dict[int, str], index: int) -> None:
    """Add a piece of a stream to a block; pieces of the input of a call to `inputs`, at the block's index."""
    match delta:
        case {"type": "input_json_delta", "partial_json": str(text)}:
            inputs[index] = inputs.get(index, "") + text
        case {"type": "citations_delta", "citation": citation}:
            block["citations"] = [*as_list(block.get("citations")), citation]
        case {"type": "text_delta" | "thinking_delta" | "signature_delta" as kind}:
            name = str(kind).removesuffix("_delta")
            block[name] = str(block.get(name) or "") + str(delta.get(name) or "")
        case _:
            pass


def _answer(document: JsonObject, blocks: Sequence[Block], used: JsonObject, *, whole: bool) -> ModelAnswer:
    counted = TokenUse(
        input_tokens=count_of(used, "input_tokens"),
        output_tokens=count_of(used, "output_tokens"),
        cache_write_tokens=count_of(used, "cache_creation_input_tokens"),
        cache_read_tokens=count_of(used, "cache_read_input_tokens"),
    )
    return ModelAnswer(
        id=as_text(document.get("id")),
        model=as_text(document.get("model")),
        turns=[Turn("assistant", blocks)] if blocks else [],
        used=counted if used else None,
        whole=whole,
    )


def _blocks(content: Json) -> list[Block]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for block in as_list(content) if isinstance(block, dict) and isinstance(block.get("type"), str)]


MESSAGES = Protocol("messages", "messages", read_request, with_pack, read_answer, read_events)
