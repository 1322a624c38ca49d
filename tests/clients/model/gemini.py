"""The Gemini API."""

import json
from collections.abc import Iterator
from typing import Any

from tests.clients.model.script import Said, Tool, after_prompt, after_result, value_for

Body = dict[str, Any]
_USAGE = {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}


def answer(body: Body) -> Said:
    """Return what the model says to a request."""
    config: Any = body.get("generationConfig") or {}
    if schema := config.get("responseJsonSchema") or config.get("responseSchema"):
        return Said(json.dumps(value_for(schema)))
    declared = [each for tool in body.get("tools") or [] for each in tool.get("functionDeclarations") or []]
    parts = body["contents"][-1]["parts"]
    results = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
    if results:
        return after_result(json.dumps(results[-1]))
    prompt = "\n".join(part["text"] for part in parts if "text" in part)
    return after_prompt(prompt, {each["name"]: Tool() for each in declared})


def whole(said: Said, body: Body, number: int) -> Body:
    """Return the answer as one message."""
    part: Body = {"text": said.text}
    if said.tool:
        part = {"functionCall": {"id": f"call_{number}", "name": said.tool, "args": said.arguments}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": _USAGE, "modelVersion": "scripted", "responseId": f"r{number}"}


def events(said: Said, body: Body, number: int) -> Iterator[tuple[str, Body]]:
    """Yield the answer as one server-sent event."""
    yield "", whole(said, body, number)
