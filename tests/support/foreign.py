"""Other people's transcripts as messages of ours: no more of each format than tests of the pipeline need."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from server.clients.claude_code import read_transcript

Turn = tuple[str, Any, str | None]
"""Role, content and time."""


def conversations(folder: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield a name and the messages, as the API takes them, of each conversation in a folder of transcripts."""
    for client, read in _READERS.items():
        for name, turns in read(folder / client):
            told = [turn for turn in turns if turn[1]]
            if told:
                yield f"{client}/{name}", [_message(place, *turn) for place, turn in enumerate(told)]


def _message(place: int, role: str, content: Any, sent_at: str | None) -> dict[str, Any]:
    at = {"sent_at": sent_at} if sent_at and sent_at[:4].isdigit() else {}
    return {"external_id": f"m{place}", "role": role, "content": content} | at


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text("utf-8", "replace").splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


Conversations = Iterator[tuple[str, list[Turn]]]


def _claude(folder: Path) -> Conversations:
    for path in sorted(folder.rglob("*.jsonl")):
        for transcript in read_transcript(path).transcripts:
            turns = [(e.role, e.content, e.sent_at.isoformat() if e.sent_at else None) for e in transcript.entries]
            yield f"{path.stem}/{transcript.external_id}", turns


def _by_line(turns: Callable[[dict[str, Any]], Iterable[Turn]]) -> Callable[[Path], Conversations]:
    def read(folder: Path) -> Conversations:
        for path in sorted(folder.rglob("*.jsonl")):
            yield str(path.relative_to(folder)), [turn for line in _lines(path) for turn in turns(line)]

    return read


def _codex(line: dict[str, Any]) -> Iterator[Turn]:
    at = line.get("timestamp")
    match line.get("payload"):
        case {"type": "message", "role": "user" | "assistant" as role, "content": list(parts)}:
            yield role, [_text(part["text"]) for part in parts if isinstance(part.get("text"), str)], at
        case {"type": "function_call" | "custom_tool_call", "name": name, "call_id": call} as item:
            yield "assistant", [_call(call, name, _json(item.get("arguments", item.get("input"))))], at
        case {"type": "function_call_output" | "custom_tool_call_output", "call_id": call, "output": output}:
            yield "user", [_result(call, output if isinstance(output, str) else "\n".join(_texts(output)))], at
        case _:
            pass


def _pi(line: dict[str, Any]) -> Iterator[Turn]:
    at = line.get("timestamp")
    match line.get("message"):
        case {"role": "user", "content": content}:
            yield "user", content if isinstance(content, str) else [_text(text) for text in _texts(content)], at
        case {"role": "assistant", "content": list(parts)}:
            calls = [_call(p["id"], p["name"], p["arguments"]) for p in parts if p.get("type") == "toolCall"]
            yield "assistant", [*map(_text, _texts([p for p in parts if p.get("type") == "text"])), *calls], at
        case {"role": "toolResult", "toolCallId": call, "content": content} as result:
            yield "user", [_result(call, "\n".join(_texts(content)), error=bool(result.get("isError")))], at
        case {"role": "bashExecution", "command": command, "output": output}:
            yield "user", [_call(f"bash {at}", "bash", {"command": command}), _result(f"bash {at}", output)], at
        case _:
            pass


def _cursor(line: dict[str, Any]) -> Iterator[Turn]:
    if line.get("role") in ("user", "assistant"):
        parts = line["message"]["content"]
        known = [part for part in parts if part.get("type") in ("text", "tool_use", "tool_result")]
        yield line["role"], [{"id": "t", **part} if part["type"] == "tool_use" else part for part in known], None


def _copilot(line: dict[str, Any]) -> Iterator[Turn]:
    at, data = line.get("timestamp"), line.get("data")
    match line.get("type"), data:
        case "user.message", {"content": str(text)}:
            yield "user", text, at
        case "assistant.message", {"content": str(text), **rest}:
            asked: list[dict[str, Any]] = rest.get("toolRequests") or []
            calls = [_call(c["toolCallId"], c["name"], _json(c["arguments"])) for c in asked if "toolCallId" in c]
            yield "assistant", [*([_text(text)] if text else []), *calls], at
        case "tool.execution_complete", {"toolCallId": call, "result": {"content": str(text)}}:
            yield "user", [_result(call, text)], at
        case _:
            pass


def _gemini(folder: Path) -> Conversations:
    for path in sorted([*folder.rglob("*.jsonl"), *folder.rglob("*.json")]):
        whole = json.loads(path.read_text()) if path.suffix == ".json" else {"messages": list(_lines(path))}
        # A record that comes again is the same one with more in it.
        told = whole.get("messages", whole.get("history", []))
        records = {str(record.get("id", place)): record for place, record in enumerate(told)}
        yield path.name, [turn for record in records.values() for turn in _gemini_turns(record)]


def _gemini_turns(record: dict[str, Any]) -> Iterator[Turn]:
    kind, at = record.get("type", record.get("role")), record.get("timestamp")
    if kind not in ("user", "gemini"):
        return
    content = record.get("content", record.get("parts"))
    texts = [content] if isinstance(content, str) else list(_texts(content))
    calls: list[dict[str, Any]] = record.get("toolCalls") or []
    blocks = [*map(_text, filter(None, texts)), *(_call(c["id"], c["name"], c["args"]) for c in calls)]
    yield "user" if kind == "user" else "assistant", blocks, at
    for call in calls:
        yield "user", [_result(call["id"], json.dumps(call.get("result")))], at


def _opencode(folder: Path) -> Conversations:
    for session in sorted(folder.rglob("message/*")):
        turns: list[Turn] = []
        for path in sorted(session.glob("*.json")):
            message = json.loads(path.read_text())
            parts = sorted((session.parent.parent / "part" / message["id"]).glob("*.json"))
            turns += _opencode_turns(message["role"], [json.loads(part.read_text()) for part in parts])
        yield str(session.relative_to(folder)), turns


def _opencode_turns(role: str, parts: list[dict[str, Any]]) -> Iterator[Turn]:
    for part in parts:
        match part:
            case {"type": "text", "text": text} if not part.get("synthetic"):
                yield role, [_text(text)], None
            case {"type": "tool", "callID": call, "tool": name, "state": {"input": given} as state}:
                yield "assistant", [_call(call, name, given)], None
                yield "user", [_result(call, str(state.get("output")))], None
            case _:
                pass


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _texts(content: Any) -> Iterator[str]:
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"]


def _call(call: str, name: str, given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": name, "input": given}


def _result(call: str, text: str, *, error: bool = False) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": error}


def _json(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


_READERS: dict[str, Callable[[Path], Conversations]] = {
    "claude": _claude,
    "codex": _by_line(_codex),
    "copilot": _by_line(_copilot),
    "cursor": _by_line(_cursor),
    "gemini": _gemini,
    "opencode": _opencode,
    "pi": _by_line(_pi),
}
