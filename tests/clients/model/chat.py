"""Chat completions."""

import json
from collections.abc import Iterator
from typing import Any

from tests.clients.model.script import Said, Tool, after_prompt, after_result

Body = dict[str, Any]
_WRITTEN = 20


def answer(body: Body) -> Said:
    """Return what the model says to a request."""
    tools = {
        tool["function"]["name"]: Tool(schema=tool["function"].get("parameters"))
        for tool in body.get("tools") or []
        if tool.get("type") == "function"
    }
    last = body["messages"][-1]
    if last["role"] == "tool":
        return after_result(_text(last), tools)
    prompts = [_text(message) for message in body["messages"] if message["role"] == "user"]
    return after_prompt(prompts[-1] if prompts else "", tools)


def whole(said: Said, body: Body, number: int) -> Body:
    """Return the answer as one message."""
    choice = {"index": 0, "message": _message(said, number), "finish_reason": _reason(said)}
    return _head(body, number) | {"object": "chat.completion", "choices": [choice], "usage": _usage(said)}


def events(said: Said, body: Body, number: int) -> Iterator[tuple[str, Body]]:
    """Yield the answer as server-sent events; the end of the stream ends it."""
    head = _head(body, number) | {"object": "chat.completion.chunk"}
    for delta in _message(said, number), {}:
        yield "", head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield "", head | {"choices": [{"index": 0, "delta": {}, "finish_reason": _reason(said)}], "usage": _usage(said)}


def _head(body: Body, number: int) -> Body:
    return {"id": f"chatcmpl-{number}", "created": 0, "model": body["model"]}


def _usage(said: Said) -> Body:
    return {"prompt_tokens": said.sent, "completion_tokens": _WRITTEN, "total_tokens": said.sent + _WRITTEN}


def _reason(said: Said) -> str:
    return "tool_calls" if said.tool else "stop"


def _message(said: Said, number: int) -> Body:
    if said.tool is None:
        return {"role": "assistant", "content": said.text}
    function = {"name": said.tool, "arguments": json.dumps(said.arguments)}
    call = {"index": 0, "id": f"call_{number:020d}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _text(message: Body) -> str:
    content: Any = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
