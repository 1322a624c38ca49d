"""The Messages API."""

import json
from collections.abc import Iterator
from typing import Any

from tests.clients.model.script import Said, Tool, after_prompt, after_result, strip_around, value_for

Body = dict[str, Any]
_SIGNATURE = "c2lnbmVkIGJ5IHRoZSBzY3JpcHRlZCBtb2RlbA=="


def answer(body: Body) -> Said:
    """Return what the model says to a request."""
    form: Any = (body.get("output_config") or {}).get("format") or {}
    if "schema" in form:
        return Said(json.dumps(value_for(form["schema"])))
    tools = {tool["name"]: Tool(schema=tool.get("input_schema")) for tool in body.get("tools") or [] if "name" in tool}
    users = [message for message in body["messages"] if message["role"] == "user"]
    results = [block for block in _blocks(users[-1]) if block["type"] == "tool_result"] if users else []
    if results and _is_loaded(results[-1]):
        # Claude Code writes "Tool loaded." beside it.
        return after_prompt(next((text for text in map(_said, reversed(users)) if "CALLRECALL" in text), ""), tools)
    # It writes the order to summarise behind a result.
    if results and (beside := strip_around(_said(users[-1]))):
        return after_prompt(beside, tools)
    if results:
        return after_result(_text(results[-1].get("content", "")), tools)
    # pi puts a message of its own behind the prompt: everything since the model spoke last counts.
    spoken = [index for index, message in enumerate(body["messages"]) if message["role"] == "assistant"]
    since = body["messages"][spoken[-1] + 1 if spoken else 0 :]
    return after_prompt("\n".join(_said(message) for message in since if message["role"] == "user"), tools)


def whole(said: Said, body: Body, number: int) -> Body:
    """Return the answer as one message."""
    return _message(said, body, number) | {"content": _answered(said, body, number)}


def events(said: Said, body: Body, number: int) -> Iterator[tuple[str, Body]]:
    """Yield the answer as server-sent events."""
    yield _event("message_start", message=_message(said, body, number) | {"content": [], "stop_reason": None})
    for index, block in enumerate(_answered(said, body, number)):
        empty, deltas = _pieces(block)
        yield _event("content_block_start", index=index, content_block=empty)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    stop = {"stop_reason": "tool_use" if said.tool else "end_turn", "stop_sequence": None}
    yield _event("message_delta", delta=stop, usage={"output_tokens": 20})
    yield _event("message_stop")


def _pieces(block: Body) -> tuple[Body, list[Body]]:
    """Return the beginning of a block, and the pieces in which the rest of it is sent."""
    match block["type"]:
        case "tool_use":
            return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        case "thinking":
            thought = {"type": "thinking_delta", "thinking": block["thinking"]}
            signature = {"type": "signature_delta", "signature": block["signature"]}
            return block | {"thinking": "", "signature": ""}, [thought, signature]
        case _:
            return block | {"text": ""}, [{"type": "text_delta", "text": block["text"]}]


def _event(name: str, **more: Any) -> tuple[str, Body]:
    return name, {"type": name, **more}


def _message(said: Said, body: Body, number: int) -> Body:
    return {
        "id": f"msg_{number:024d}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "stop_reason": "tool_use" if said.tool else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": said.sent,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 20,
        },
    }


def _answered(said: Said, body: Body, number: int) -> list[Body]:
    """Return the blocks of an answer; the model thinks before a call if it is asked to."""
    thinks = said.tool and (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")
    thought = {"type": "thinking", "thinking": f"Call {number} is next.", "signature": f"{_SIGNATURE}{number:04d}"}
    return [*([thought] if thinks else []), _block(said, number)]


def _block(said: Said, number: int) -> Body:
    if said.tool is None:
        return {"type": "text", "text": said.text}
    return {"type": "tool_use", "id": f"toolu_{number:020d}", "name": said.tool, "input": said.arguments}


def _blocks(message: Body) -> list[Body]:
    content: Any = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _said(message: Body) -> str:
    return "\n".join(block["text"] for block in _blocks(message) if block["type"] == "text")


def _text(content: Any) -> str:
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def _is_loaded(result: Body) -> bool:
    """Whether a result is the tools that Claude Code's search has found."""
    content: Any = result.get("content")
    return isinstance(content, list) and any(part.get("type") == "tool_reference" for part in content)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
