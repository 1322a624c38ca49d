"""OpenAI's chat completions: `POST /v1/chat/completions`, which many other servers speak."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from esker.server.agents.content import (
    Block,
    as_list,
    as_text,
    call_block,
    image_at,
    joined,
    result_block,
    text_block,
)
from esker.server.core.json_input import Json, JsonObject, as_object
from esker.server.gateway.counts import index_of
from esker.server.gateway.json_spans import items, members, with_item
from esker.server.gateway.protocols.openai import openai_answer
from esker.server.gateway.records import Conversation, Event, ModelAnswer, Protocol, Turn

_INSTRUCTING = ("system", "developer")


def read_request(document: JsonObject) -> Conversation:
    """Return the conversation of a request."""
    messages = [as_object(each) for each in as_list(document.get("messages"))]
    instructions = [joined(each.get("content")) for each in messages if each.get("role") in _INSTRUCTING]
    turns = [replace(turn, item=item) for item, each in enumerate(messages) for turn in _turns(each)]
    return Conversation(as_text(document.get("model")), turns, bool(as_list(document.get("tools"))), instructions)


def with_pack(text: str, pack: str) -> str | None:
    """Return a request with the pack behind the system messages that it begins with."""
    messages = members(text).get("messages")
    if messages is None or not isinstance(messages.value, list):
        return None
    roles = [as_object(each.value).get("role") for each in items(text, messages.start)]
    first = next((place for place, role in enumerate(roles) if role not in _INSTRUCTING), len(roles))
    role = roles[first - 1] if first else "system"
    return with_item(text, messages.start, first, {"role": role, "content": pack})


def read_answer(document: JsonObject) -> ModelAnswer:
    """Return the answer of a request without streaming."""
    choices = [as_object(each) for each in as_list(document.get("choices"))]
    message = as_object(choices[0].get("message")) if choices else {}
    return _answer(document, {"role": "assistant", **message}, whole=True)


def read_events(events: Iterable[Event]) -> ModelAnswer:
    """Return the answer that a stream contains. Its usage is there only if the client asked for it."""
    document: JsonObject = {}
    words = ""
    calls: dict[int, JsonObject] = {}
    ended = False
    for _, data in events:
        document |= {name: value for name in ("id", "model", "usage") if (value := data.get(name))}
        for choice in map(as_object, as_list(data.get("choices"))):
            if choice.get("index"):
                continue
            delta = as_object(choice.get("delta"))
            words += as_object({"content": delta.get("content")}).get("content") or ""
            _extend(calls, delta)
            # Some servers send an empty one with each chunk.
            ended = ended or bool(choice.get("finish_reason"))
    message: JsonObject = {"role": "assistant", "content": words, "tool_calls": [calls[i] for i in sorted(calls)]}
    return _answer(document, message, whole=ended)


def _extend(calls: dict[int, JsonObject], delta: JsonObject) -> None:
    for part in map(as_object, as_list(delta.get("tool_calls"))):
        call = calls.setdefault(index_of(part), {"function": {"name": "", "arguments": ""}})
        call["id"] = part.get("id") or call.get("id")
        for name, text in as_object(part.get("function")).items():
            call["function"][name] = call["function"].get(name, "") + (text or "")


def _answer(document: JsonObject, message: JsonObject, *, whole: bool) -> ModelAnswer:
    return openai_answer(document, _turns(message), sent="prompt", written="completion", whole=whole)


def _turns(message: JsonObject) -> Iterator[Turn]:
    match message.get("role"):
        case "user":
            yield Turn("user", list(_content(message.get("content"))))
        case "assistant":
            calls = [
                call_block(
                    str(each.get("id") or ""),
                    as_object(each.get("function")).get("name"),
                    as_object(each.get("function")).get("arguments"),
                )
                for each in map(as_object, as_list(message.get("tool_calls")))
            ]
            if blocks := [*_content(message.get("content")), *calls]:
                yield Turn("assistant", blocks)
        case "tool":
            yield Turn("user", [result_block(str(message.get("tool_call_id") or ""), joined(message.get("content")))])
        case _:
            pass


def _content(content: Json) -> Iterator[Block]:
    if isinstance(content, str) and content:
        yield text_block(content)
    for part in map(as_object, as_list(content)):
        if part.get("type") == "image_url":
            if image := image_at(as_object(part.get("image_url")).get("url")):
                yield image
        elif isinstance(text := part.get("text"), str):
            yield text_block(text)


CHAT = Protocol("chat", "messages", read_request, with_pack, read_answer, read_events)
