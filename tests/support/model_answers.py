"""Answers of models in the four protocols, from parts, and what a client understands of them."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

Part = tuple[str, str]
"""A part of an answer: "thought" or "text" with its words, "call" with the name of a tool, "recall" with a query."""
TOOL = "recall_memory"


class Seen(NamedTuple):
    """An answer as a client understood it: its parts, why it ended, and the tokens that were written."""

    parts: list[Part]
    reason: str
    written: int


class Form(NamedTuple):
    """A protocol: it writes a numbered answer as a stream or as a document, and reads both as clients do."""

    stream: Callable[[Sequence[Part], int], list[bytes]]
    document: Callable[[Sequence[Part], int], dict[str, Any]]
    read_stream: Callable[[bytes], Seen]
    read_document: Callable[[dict[str, Any]], Seen]


def _named(part: Part) -> tuple[str, dict[str, str]]:
    return (TOOL, {"query": part[1]}) if part[0] == "recall" else (part[1], {"path": "cart.py"})


def _is_call(part: Part) -> bool:
    return part[0] in ("call", "recall")


def _event(data: dict[str, Any]) -> bytes:
    name = f"event: {data['type']}\n" if "type" in data else ""
    return f"{name}data: {json.dumps(data)}\n\n".encode()


def _events(body: bytes) -> list[dict[str, Any]]:
    lines = [line for line in body.decode().splitlines() if line.startswith("data: {")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def _messages_block(part: Part, number: int, index: int) -> dict[str, Any]:
    if part[0] == "thought":
        return {"type": "thinking", "thinking": part[1], "signature": f"sig{number}.{index}"}
    if part[0] == "text":
        return {"type": "text", "text": part[1]}
    name, given = _named(part)
    return {"type": "tool_use", "id": f"toolu_{number}_{index}", "name": name, "input": given}


def _messages_document(parts: Sequence[Part], number: int) -> dict[str, Any]:
    reason = "tool_use" if any(map(_is_call, parts)) else "end_turn"
    blocks = [_messages_block(part, number, index) for index, part in enumerate(parts)]
    about = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "m", "content": blocks}
    return about | {"stop_reason": reason, "usage": {"input_tokens": 100, "output_tokens": 10}}


def _messages_stream(parts: Sequence[Part], number: int) -> list[bytes]:
    document = _messages_document(parts, number)
    start = document | {"content": [], "stop_reason": None, "usage": {"input_tokens": 100, "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, block in enumerate(document["content"]):
        begun, deltas = _messages_pieces(block)
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": document["stop_reason"], "stop_sequence": None}
    events += [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": 10}}, {"type": "message_stop"}]
    return [_event(event) for event in events]


def _messages_pieces(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match block["type"]:
        case "thinking":
            deltas = [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
            return {"type": "thinking", "thinking": "", "signature": ""}, deltas
        case "text":
            half = len(block["text"]) // 2
            pieces = (block["text"][:half], block["text"][half:])
            return {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces]
        case _:
            written = json.dumps(block["input"])
            pieces = (written[:3], written[3:])
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
            return block | {"input": {}}, deltas


def _messages_read(body: bytes) -> Seen:
    events = [event for event in _events(body) if event["type"] != "ping"]
    assert [event["type"] for event in events].count("message_start") == 1
    assert events[0]["type"] == "message_start"
    assert [event["type"] for event in events[-2:]] == ["message_delta", "message_stop"]
    blocks: list[dict[str, Any]] = []
    is_open = False
    for event in events[1:-2]:
        match event["type"]:
            case "content_block_start":
                assert not is_open
                assert event["index"] == len(blocks)
                blocks.append(event["content_block"] | {"written": ""})
                is_open = True
            case "content_block_delta":
                assert is_open
                assert event["index"] == len(blocks) - 1
                _extend(blocks[-1], event["delta"])
            case kind:
                assert kind == "content_block_stop"
                assert event["index"] == len(blocks) - 1
                is_open = False
    assert not is_open
    for block in blocks:
        if written := block.pop("written"):
            block["input"] = json.loads(written)
    end = events[-2]
    document = events[0]["message"] | {"content": blocks, "stop_reason": end["delta"]["stop_reason"]}
    return _messages_read_document(document | {"usage": end["usage"]})


def _extend(block: dict[str, Any], delta: dict[str, Any]) -> None:
    for name, value in delta.items():
        if name == "partial_json":
            block["written"] += value
        elif name != "type":
            block[name] = block.get(name, "") + value


def _messages_read_document(document: dict[str, Any]) -> Seen:
    names = {"thinking": "thinking", "text": "text", "tool_use": "name"}
    kinds = {"thinking": "thought", "text": "text", "tool_use": "call"}
    parts = [(kinds[block["type"]], str(block[names[block["type"]]])) for block in document["content"]]
    assert document["id"] == "msg_1"
    assert all(block.get("signature", "s").startswith("s") for block in document["content"])
    return Seen(parts, document["stop_reason"], document["usage"]["output_tokens"])


def _responses_item(part: Part, number: int, index: int) -> dict[str, Any]:
    if part[0] == "thought":
        summary = [{"type": "summary_text", "text": part[1]}]
        return {"type": "reasoning", "id": f"rs_{number}_{index}", "summary": summary, "encrypted_content": "enc"}
    if part[0] == "text":
        content = [{"type": "output_text", "text": part[1], "annotations": []}]
        about = {"type": "message", "id": f"msg_{number}_{index}", "role": "assistant", "status": "completed"}
        return about | {"content": content}
    name, given = _named(part)
    about = {"type": "function_call", "id": f"fc_{number}_{index}", "call_id": f"call_{number}_{index}"}
    return about | {"name": name, "arguments": json.dumps(given), "status": "completed"}


def _responses_document(parts: Sequence[Part], number: int) -> dict[str, Any]:
    items = [_responses_item(part, number, index) for index, part in enumerate(parts)]
    used = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    about = {"id": f"resp_{number}", "object": "response", "status": "completed", "model": "m"}
    return about | {"output": items, "usage": used}


def _responses_stream(parts: Sequence[Part], number: int) -> list[bytes]:
    whole = _responses_document(parts, number)
    begun = whole | {"output": [], "status": "in_progress", "usage": None}
    events: list[dict[str, Any]] = [
        {"type": f"response.{name}", "response": begun} for name in ("created", "in_progress")
    ]
    for index, item in enumerate(whole["output"]):
        events.append(
            {"type": "response.output_item.added", "output_index": index, "item": item | {"status": "in_progress"}}
        )
        if item["type"] == "message":
            text = item["content"][0]["text"]
            delta = {"type": "response.output_text.delta", "item_id": item["id"], "content_index": 0, "delta": text}
            events.append(delta | {"output_index": index})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return [_event(event | {"sequence_number": place}) for place, event in enumerate(events)]


def _responses_read(body: bytes) -> Seen:
    events = _events(body)
    assert [event["sequence_number"] for event in events] == [*range(len(events))]
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    assert events[-1]["type"] == "response.completed"
    items: list[dict[str, Any]] = []
    for event in events[2:-1]:
        match event["type"]:
            case "response.output_item.added":
                assert event["output_index"] == len(items)
                items.append(event["item"])
            case kind:
                assert event["output_index"] == len(items) - 1
                if kind == "response.output_item.done":
                    items[-1] = event["item"]
    assert {event["response"]["id"] for event in events if "response" in event} == {"resp_1"}
    assert events[-1]["response"]["output"] == items
    return _responses_read_document(events[-1]["response"])


def _responses_read_document(document: dict[str, Any]) -> Seen:
    parts: list[Part] = []
    for item in document["output"]:
        match item["type"]:
            case "reasoning":
                parts.append(("thought", item["summary"][0]["text"]))
            case "message":
                parts.append(("text", item["content"][0]["text"]))
            case _:
                parts.append(("call", item["name"]))
    assert document["id"] == "resp_1"
    used = document["usage"]
    assert used["total_tokens"] == used["input_tokens"] + used["output_tokens"]
    return Seen(parts, document["status"], used["output_tokens"])


def _chat_document(parts: Sequence[Part], number: int) -> dict[str, Any]:
    calls = [
        {"id": f"call_{number}_{index}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for index, part in enumerate(parts)
        if _is_call(part)
        for name, given in [_named(part)]
    ]
    message: dict[str, Any] = {"role": "assistant", "content": _joined(parts, "text") or None}
    message |= {"reasoning_content": thought} if (thought := _joined(parts, "thought")) else {}
    message |= {"tool_calls": calls} if calls else {}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    used = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    return {"id": f"chatcmpl-{number}", "object": "chat.completion", "model": "m", "choices": [choice], "usage": used}


def _joined(parts: Iterable[Part], kind: str) -> str:
    return "".join(words for each, words in parts if each == kind)


def _chat_stream(parts: Sequence[Part], number: int) -> list[bytes]:
    document = _chat_document(parts, number)
    [choice] = document["choices"]
    message = choice["message"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": thought}] if (thought := message.get("reasoning_content")) else []
    deltas += [{"content": letter} for letter in message["content"] or ""]
    for index, call in enumerate(message.get("tool_calls", [])):
        begun = {"name": call["function"]["name"], "arguments": ""}
        deltas.append({"tool_calls": [call | {"index": index, "function": begun}]})
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": call["function"]["arguments"]}}]})
    about = {"id": document["id"], "object": "chat.completion.chunk", "model": "m"}
    chunks = [about | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append(about | {"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    chunks.append(about | {"choices": [], "usage": document["usage"]})
    return [*map(_event, chunks), b"data: [DONE]\n\n"]


def _chat_read(body: bytes) -> Seen:
    chunks = _events(body)
    assert body.endswith(b"data: [DONE]\n\n")
    assert body.count(b"[DONE]") == 1
    assert {chunk["id"] for chunk in chunks} == {"chatcmpl-1"}
    assert [bool(chunk["choices"]) for chunk in chunks] == [*[True] * (len(chunks) - 1), False]
    message: dict[str, Any] = {"content": "", "reasoning_content": "", "tool_calls": []}
    ends = [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]]
    assert [end for end in ends if end] == ends[-1:]
    for chunk in chunks[:-1]:
        delta = chunk["choices"][0]["delta"]
        for name in ("content", "reasoning_content"):
            message[name] += delta.get(name) or ""
        for part in delta.get("tool_calls", []):
            if part["index"] == len(message["tool_calls"]):
                message["tool_calls"].append({"function": {"name": part["function"]["name"]}, "id": part["id"]})
            assert part["index"] == len(message["tool_calls"]) - 1
    choice = {"message": message, "finish_reason": ends[-1]}
    return _chat_read_document(chunks[-1] | {"choices": [choice]})


def _chat_read_document(document: dict[str, Any]) -> Seen:
    [choice] = document["choices"]
    message = choice["message"]
    parts: list[Part] = [("text", text)] if (text := message["content"]) else []
    parts += [("call", call["function"]["name"]) for call in message.get("tool_calls", [])]
    used = document["usage"]
    assert used["total_tokens"] == used["prompt_tokens"] + used["completion_tokens"]
    return Seen(parts, choice["finish_reason"], used["completion_tokens"])


def _gemini_parts(parts: Sequence[Part]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for part in parts:
        if _is_call(part):
            name, given = _named(part)
            # The first call of an answer alone is signed.
            is_first = not any("functionCall" in each for each in found)
            found.append(
                {"functionCall": {"name": name, "args": given}} | ({"thoughtSignature": "sig"} if is_first else {})
            )
        else:
            found.append({"text": part[1]} | ({"thought": True} if part[0] == "thought" else {}))
    return found


def _gemini_document(parts: Sequence[Part], number: int) -> dict[str, Any]:
    content = {"role": "model", "parts": _gemini_parts(parts)}
    used = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}
    return {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": used,
        "responseId": f"r{number}",
    }


def _gemini_stream(parts: Sequence[Part], number: int) -> list[bytes]:
    whole = _gemini_document(parts, number)
    [candidate] = whole["candidates"]
    every = candidate["content"]["parts"]
    chunks = [
        {**whole, "candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]} for part in every[:-1]
    ]
    chunks.append({**whole, "candidates": [candidate | {"content": {"role": "model", "parts": every[-1:]}}]})
    return [f"data: {json.dumps(chunk)}\r\n\r\n".encode() for chunk in chunks]


def _gemini_read(body: bytes) -> Seen:
    chunks = _events(body)
    ends = [chunk["candidates"][0].get("finishReason") for chunk in chunks]
    assert ends == [*[None] * (len(chunks) - 1), "STOP"]
    every = [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]
    assert all(chunk["candidates"][0]["content"]["parts"] for chunk in chunks)
    candidate = chunks[-1]["candidates"][0]
    return _gemini_read_document(chunks[-1] | {"candidates": [candidate | {"content": {"parts": every}}]})


def _gemini_read_document(document: dict[str, Any]) -> Seen:
    parts: list[Part] = []
    calls: list[dict[str, Any]] = []
    for part in document["candidates"][0]["content"]["parts"]:
        if "functionCall" in part:
            parts.append(("call", part["functionCall"]["name"]))
            calls.append(part)
        elif part["text"]:
            parts.append(("thought" if part.get("thought") else "text", part["text"]))
    assert document["responseId"] == "r1"
    assert not calls or "thoughtSignature" in calls[0]
    used = document["usageMetadata"]
    assert used["totalTokenCount"] == used["promptTokenCount"] + used["candidatesTokenCount"]
    return Seen(parts, document["candidates"][0]["finishReason"], used["candidatesTokenCount"])


FORMS = {
    "messages": Form(_messages_stream, _messages_document, _messages_read, _messages_read_document),
    "responses": Form(_responses_stream, _responses_document, _responses_read, _responses_read_document),
    "chat": Form(_chat_stream, _chat_document, _chat_read, _chat_read_document),
    "gemini": Form(_gemini_stream, _gemini_document, _gemini_read, _gemini_read_document),
}
"""The protocols by their names in the gateway."""
