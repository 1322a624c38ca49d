"""The Responses API."""

import json
from collections.abc import Iterator
from typing import Any

from tests.clients.model.script import SUMMARY, Said, Tool, after_prompt, after_result, value_for

Body = dict[str, Any]
_WRITTEN = 20
_ENCRYPTED = "c2lnbmVkIGJ5IHRoZSBzY3JpcHRlZCBtb2RlbA=="
# The last item of a request with which Codex lets its provider compact the conversation.
_COMPACTS = "compaction_trigger"
_FOUND = "tool_search_output"


def tools_of(body: Body) -> dict[str, Tool]:
    """Return the tools of a request, with those that a search has found."""
    offered = list(body.get("tools") or [])
    for item in _items(body):
        offered += item.get("tools") or [] if item.get("type") in (_FOUND, "additional_tools") else []
    tools: dict[str, Tool] = {}
    for tool in offered:
        if tool.get("type") == "namespace":
            tools |= {
                inner["name"]: Tool(namespace=tool["name"], schema=inner.get("parameters"))
                for inner in tool.get("tools", [])
            }
        else:
            tools[tool.get("name") or tool["type"]] = Tool(tool["type"], schema=tool.get("parameters"))
    return tools


def answer(body: Body) -> Said:
    """Return what the model says to a request."""
    form: Any = (body.get("text") or {}).get("format") or {}
    if form.get("type") == "json_schema":
        return Said(json.dumps(value_for(form.get("schema"))))
    items = _items(body)
    last = items[-1] if items else {}
    prompts = [_text(item) for item in items if item.get("role") == "user"]
    if last.get("type") == _COMPACTS:
        return Said(SUMMARY)
    if last.get("type") == _FOUND:
        prompts = [prompt for prompt in prompts if "CALLRECALL" in prompt]
    elif str(last.get("type", "")).endswith("_output"):
        output = last.get("output", "")
        return after_result(output if isinstance(output, str) else json.dumps(output), tools_of(body))
    return after_prompt(prompts[-1] if prompts else "", tools_of(body))


def events(said: Said, body: Body, number: int) -> Iterator[tuple[str, Body]]:
    """Yield the answer as server-sent events."""
    response = {
        "id": f"resp_{number:024d}",
        "object": "response",
        "created_at": 0,
        "model": body["model"],
        "status": "in_progress",
        "output": [],
    }
    output = _output(said, body, number)
    yield _event("response.created", response=response)
    for index, item in enumerate(output):
        yield _event("response.output_item.added", output_index=index, item=item)
        if item["type"] == "message":
            delta = {"item_id": item["id"], "output_index": index, "content_index": 0, "delta": said.text}
            yield _event("response.output_text.delta", **delta)
        yield _event("response.output_item.done", output_index=index, item=item)
    done = {**response, "status": "completed", "output": output, "usage": _usage(said)}
    yield _event("response.completed", response=done)


def _usage(said: Said) -> Body:
    return {
        "input_tokens": said.sent,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": _WRITTEN,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": said.sent + _WRITTEN,
    }


def _output(said: Said, body: Body, number: int) -> list[Body]:
    """Return the items of an answer; the model thinks before a call if the client keeps its thoughts."""
    thinks = said.tool and "reasoning.encrypted_content" in (body.get("include") or [])
    thought = {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": f"{_ENCRYPTED}{number}"}
    if _items(body)[-1].get("type") == _COMPACTS:
        return [{"type": "compaction", "id": f"cmp_{number}", "encrypted_content": f"{_ENCRYPTED}{number}"}]
    return [*([thought] if thinks else []), _item(said, tools_of(body), number)]


def _event(name: str, **more: Any) -> tuple[str, Body]:
    return name, {"type": name, **more}


def _item(said: Said, tools: dict[str, Tool], number: int) -> Body:
    call = {"call_id": f"call_{number:020d}", "status": "completed"}
    if said.tool is None:
        content = [{"type": "output_text", "text": said.text, "annotations": []}]
        return {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    tool = tools[said.tool]
    if tool.kind == "tool_search":
        return {"type": "tool_search_call", "execution": "client", "arguments": said.arguments, **call}
    named = {"name": said.tool, "arguments": json.dumps(said.arguments)}
    return {"type": "function_call", **named, **call} | ({"namespace": tool.namespace} if tool.namespace else {})


def _items(body: Body) -> list[Body]:
    items: Any = body.get("input") or []
    return [{"type": "message", "role": "user", "content": items}] if isinstance(items, str) else items


def _text(item: Body) -> str:
    content: Any = item.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
