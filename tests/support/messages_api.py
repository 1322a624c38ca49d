"""The rules of the Messages API for the messages of a request."""

import re
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

# The fields that the API knows of each block that may be sent.
_FIELDS = {
    "text": {"text"},
    "image": {"source"},
    "document": {"source"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
    "tool_use": {"id", "name", "input"},
    "tool_result": {"tool_use_id", "content", "is_error"},
}
_SPOKEN_BY = {
    "user": {"text", "image", "document", "tool_result"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use"},
}


def faults(messages: list[Json]) -> list[str]:
    """Return the reasons why the API would refuse the messages of a request."""
    return [*_roles(messages), *_contents(messages), *_pairs(messages)]


def _roles(messages: list[Json]) -> Iterator[str]:
    for place, message in enumerate(messages):
        if message["role"] != ("assistant" if place % 2 else "user"):
            yield f"message {place} is the {message['role']}'s: the user begins, and roles alternate"


def _contents(messages: list[Json]) -> Iterator[str]:
    for place, message in enumerate(messages):
        if not message["content"]:
            yield f"message {place} is empty"
        for block in message["content"]:
            kind = block["type"]
            if kind not in _SPOKEN_BY[message["role"]]:
                yield f"message {place}: a {kind} block of the {message['role']}"
            yield from (f"message {place}: {fault}" for fault in _block(block))
        if message["role"] == "assistant" and message["content"][-1]["type"] in ("thinking", "redacted_thinking"):
            yield f"message {place} ends in a thought"
    last = messages[-1]["content"][-1] if messages and messages[-1]["content"] else {}
    if messages and messages[-1]["role"] == "assistant" and last.get("text", "") != last.get("text", "").rstrip():
        yield "what the assistant is to go on with ends in white space"


def _block(block: Json) -> Iterator[str]:
    kind = block["type"]
    if unknown := block.keys() - _FIELDS.get(kind, set()) - {"type"}:
        yield f"a {kind} block with {unknown}"
    if kind == "text" and not block["text"].strip():
        yield "a blank text"
    if kind == "thinking" and not block.get("signature"):
        yield "a thought without its signature"
    if kind == "tool_use" and not (
        re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"])
        and re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", block["name"])
        and isinstance(block["input"], dict)
    ):
        yield f"a call that is none: {block}"
    if kind == "tool_result" and isinstance(content := block.get("content"), list):
        yield from ("a result without content" for _ in [0] if not content)
        for inner in content:
            yield from _block(inner)
            if inner["type"] not in ("text", "image", "document"):
                yield f"a {inner['type']} in a result"
    if kind == "tool_result" and block.get("content") == "":
        yield "a result with blank content"


def _pairs(messages: list[Json]) -> Iterator[str]:
    calls = [block["id"] for message in messages for block in message["content"] if block["type"] == "tool_use"]
    if len(set(calls)) < len(calls):
        yield "two calls with one id"
    for place, message in enumerate(messages):
        wanted = (
            {block["id"] for block in messages[place - 1]["content"] if block["type"] == "tool_use"} if place else set()
        )
        kinds = [block["type"] for block in message["content"]]
        given = [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"]
        if sorted(given) != sorted(wanted):
            yield f"message {place} answers {given}, and the message before it called {wanted}"
        if "tool_result" in kinds[len(given) :]:
            yield f"message {place}: a result behind something else"
    if messages and any(block["type"] == "tool_use" for block in messages[-1]["content"]):
        yield "the last message calls, and nothing answers"
