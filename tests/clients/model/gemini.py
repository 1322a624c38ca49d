"""The Gemini API."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.clients.model.script import Said, Tool, after_prompt, after_result, value_for

Body = dict[str, Any]
_WRITTEN = 20
_SIGNATURE = "c2lnbmVkIGJ5IHRoZSBzY3JpcHRlZCBtb2RlbA=="


def answer(body: Body) -> Said:
    """Return what the model says to a request."""
    config: Any = body.get("generationConfig") or {}
    if schema := config.get("responseJsonSchema") or config.get("responseSchema"):
        return Said(json.dumps(value_for(schema)))
    declared = [each for tool in body.get("tools") or [] for each in tool.get("functionDeclarations") or []]
    parts = body["contents"][-1]["parts"]
    results = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
    if results:
        return after_result(json.dumps(results[-1]), _tools(declared))
    prompt = "\n".join(part["text"] for part in parts if "text" in part)
    return after_prompt(prompt, _tools(declared))


def _tools(declared: list[Body]) -> dict[str, Tool]:
    return {each["name"]: Tool(schema=each.get("parametersJsonSchema") or each.get("parameters")) for each in declared}


def whole(said: Said, body: Body, number: int) -> Body:
    """Return the answer as one message."""
    part: Body = {"text": said.text}
    if said.tool:
        call = {"id": f"call_{number}", "name": said.tool, "args": said.arguments}
        part = {"functionCall": call, "thoughtSignature": _SIGNATURE}
    return _piece(said, part, number) | {"usageMetadata": _usage(said)}


def events(said: Said, body: Body, number: int) -> Iterator[tuple[str, Body]]:
    """Yield the answer as server-sent events: a text, and behind it the end."""
    if not said.tool:
        yield "", _piece(said, {"text": said.text}, number, ends=False)
        said = replace(said, text="")
    yield "", whole(said, body, number)


def _piece(said: Said, part: Body, number: int, *, ends: bool = True) -> Body:
    candidate: Body = {"content": {"role": "model", "parts": [part]}, "index": 0}
    candidate |= {"finishReason": "STOP"} if ends else {}
    return {"candidates": [candidate], "modelVersion": "scripted", "responseId": f"r{number}"}


def _usage(said: Said) -> Body:
    counts = {"promptTokenCount": said.sent, "candidatesTokenCount": _WRITTEN}
    return counts | {"totalTokenCount": said.sent + _WRITTEN}
