"""OpenAI's Responses API: `POST /v1/responses`."""

from collections.abc import Iterable, Iterator

from esker.server.agents.content import (
    Block,
    as_list,
    as_text,
    call_block,
    image_at,
    joined,
    result_block,
    result_text,
    text_block,
)
from esker.server.core.json_input import Json, JsonObject, as_object
from esker.server.gateway.json_spans import members, replaced, with_item
from esker.server.gateway.protocols.openai import openai_answer
from esker.server.gateway.records import Conversation, Event, ModelAnswer, Protocol, Turn

_STORED = ("previous_response_id", "conversation")
ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
"""The events that end an answer."""


def read_request(document: JsonObject) -> Conversation:
    """Return the conversation of a request."""
    given = document.get("input")
    entries = [as_object(each) for each in as_list(given)]
    if isinstance(given, str):
        entries = [{"role": "user", "content": given}]
    instructions = [str(document.get("instructions") or "")]
    instructions += [joined(each.get("content")) for each in entries if each.get("role") in ("system", "developer")]
    instructions += [text for each in entries if (text := joined(each.get("content"))).startswith("<environment_")]
    # Codex puts its tools into an item of their own.
    offers_tools = any(as_list(each.get("tools")) for each in (document, *entries))
    return Conversation(as_text(document.get("model")), list(_turns(entries)), offers_tools, instructions)


def with_pack(text: str, pack: str) -> str | None:
    """Return a request with the pack as its first item, a developer's message.

    A request that continues a stored answer gets none: the request that began the chain has it. Nor does one of a
    stored conversation, which would keep the pack of each request.
    """
    found = members(text)
    given = found.get("input")
    if given is None or any(name in found and found[name].value is not None for name in _STORED):
        return None
    item: Block = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": pack}]}
    if isinstance(given.value, str):
        own = text[given.start : given.end]
        in_list = replaced(text, given, f'[{{"type":"message","role":"user","content":{own}}}]')
        return with_item(in_list, given.start, 0, item)
    return with_item(text, given.start, 0, item) if isinstance(given.value, list) else None


def read_answer(document: JsonObject) -> ModelAnswer:
    """Return the answer of a request without streaming."""
    return _answer(document, [as_object(each) for each in as_list(document.get("output"))], whole=True)


def read_events(events: Iterable[Event]) -> ModelAnswer:
    """Return the answer that a stream contains. Some servers repeat its items at the end, others do not."""
    last: JsonObject = {}
    done: list[JsonObject] = []
    ended = False
    for name, data in events:
        if name == "response.output_item.done":
            done.append(as_object(data.get("item")))
        elif name in ENDS or name == "response.created":
            last = as_object(data.get("response"))
            ended = ended or name in ENDS
    return _answer(last, done, whole=ended)


def _answer(document: JsonObject, output: list[JsonObject], *, whole: bool) -> ModelAnswer:
    return openai_answer(document, _turns(output), sent="input", written="output", whole=whole)


def _turns(entries: Iterable[JsonObject]) -> Iterator[Turn]:
    for item, each in enumerate(entries):
        kind = str(each.get("type") or "message")
        call = str(each.get("call_id") or each.get("id") or "")
        if kind == "message" and each.get("role") in ("user", "assistant"):
            yield Turn(
                "assistant" if each["role"] == "assistant" else "user", list(_content(each.get("content"))), item
            )
        elif kind.endswith("_call"):
            given = each.get("arguments") or each.get("input") or each.get("action")
            yield Turn("assistant", [call_block(call, each.get("name") or kind.removesuffix("_call"), given)], item)
        elif kind.endswith("_call_output"):
            yield Turn("user", [result_block(call, result_text(each.get("output")))], item)


def _content(content: Json) -> Iterator[Block]:
    if isinstance(content, str):
        yield text_block(content)
    for part in map(as_object, as_list(content)):
        if part.get("type") == "input_image":
            if image := image_at(part.get("image_url")):
                yield image
        elif isinstance(text := part.get("text") or part.get("refusal"), str):
            yield text_block(text)


RESPONSES = Protocol("responses", "input", read_request, with_pack, read_answer, read_events)
