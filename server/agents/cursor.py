"""The transcripts of Cursor's agent: JSON lines of a role and content, without names and times.

Cursor keeps them in a folder that is named after the project's directory, with dashes for whatever is no letter or
digit; which directory that is can only be found out where it exists.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from esker.server.agents.content import Block, arguments, as_list, as_object, as_text, joined, text_block
from esker.server.agents.lines import JsonLine, Opener, json_lines
from esker.server.agents.reader_entries import Gathering, stem
from esker.server.agents.regular_file import opened_plain
from esker.server.agents.transcript import ParsedTranscripts
from esker.server.core.json_input import Json, clean_text

CLIENT = "cursor"

_SPEAKERS = ("user", "assistant")
_ROLES = (*_SPEAKERS, "tool")
_OTHER = re.compile(r"[^A-Za-z0-9]+")
_FOLDER = "agent-transcripts"
_CALLS = ("tool_use", "tool_call")


def read_transcript(path: Path, opener: Opener = opened_plain) -> ParsedTranscripts:
    """Read a file, which is one session; a sub-agent's is a session of its own. Raises OSError."""
    gathering = Gathering(CLIENT, path)
    parent = _parent(path)
    session = f"{parent}/agent-{stem(path)}" if parent else stem(path)
    gathering.locate(session, _directory(path))
    for number, line in json_lines(path, gathering.left_out, opener):
        gathering.recognised = gathering.recognised or recognises(line)
        role = _role(line)
        if role is None:
            kind = line.get("type")
            gathering.skip(f"{kind} line" if isinstance(kind, str) else "untyped line")
            continue
        place = f"{session}:{number}"
        content = [*_blocks(_content(line), place)]
        if role == "tool":
            role, content = "user", _answers(content)
        answers = any(as_object(block).get("type") == "tool_result" for block in content)
        speaker = "assistant" if parent and not answers else role
        name = as_text(line.get("id")) or as_text(line.get("uuid"))
        gathering.add(session, speaker, content, name=name, place=place, at=line.get("timestamp"))
    return gathering.reading()


def recognises(line: JsonLine) -> bool:
    """Tell whether Cursor wrote a line."""
    return line.get("role") in _SPEAKERS and "content" in as_object(line.get("message")) and "uuid" not in line


def _role(line: JsonLine) -> str | None:
    inner = as_object(line.get("message")).get("role")
    return next((str(role) for role in (line.get("role"), inner, line.get("type")) if role in _ROLES), None)


def _content(line: JsonLine) -> Json:
    message = line.get("message")
    inner = message.get("content") if isinstance(message, dict) else message
    return line.get("content", line.get("text")) if inner is None else inner


def _blocks(content: Json, place: str) -> Iterator[Json]:
    for number, part in enumerate([content] if isinstance(content, str) else as_list(content)):
        yield _block(part, f"{place}/{number}") if isinstance(part, dict) else part


def _answers(content: list[Json]) -> list[Json]:
    """Return what a tool says, who is no person: its words are those of a result."""
    others = [block for block in content if as_object(block).get("type") != "tool_result"]
    told = joined(others)
    answer: Block = {"type": "tool_result", "content": told}
    return [*(block for block in content if block not in others), *([answer] if told else [])]


def _block(part: Block, place: str) -> Json:
    kind = str(part.get("type")).replace("-", "_")
    if kind in _CALLS:
        call = as_text(part.get("id")) or as_text(part.get("toolCallId")) or place
        given = arguments(part.get("input", part.get("args", part.get("arguments"))))
        return {"type": "tool_use", "id": call, "name": part.get("name", part.get("toolName")), "input": given}
    if kind == "tool_result":
        call = as_text(part.get("tool_use_id")) or as_text(part.get("toolCallId"))
        named: Block = {"tool_use_id": call} if call else {}
        return {"type": "tool_result", "content": part.get("content", part.get("result"))} | named
    text = part.get("text")
    if kind == "reasoning" and isinstance(text, str):
        return {"type": "thinking", "thinking": text}
    return text_block(text) if isinstance(text, str) and kind not in ("image", "thinking") else part


def _parent(path: Path) -> str | None:
    """Return the session that started a sub-agent, or None when this is none."""
    if path.parent.name != "subagents":
        return None
    beside = sorted(path.parent.parent.glob("*.jsonl"))
    return stem(beside[0]) if len(beside) == 1 else clean_text(path.parent.parent.name)


def _directory(path: Path) -> str | None:
    """Return the directory of the project that a transcript belongs to, or None when it cannot be found here."""
    folder = next((parent.parent for parent in path.parents if parent.name == _FOLDER), None)
    return next(_directories(Path("/"), _dashed(folder.name)), None) if folder else None


def _directories(inside: Path, dashed: str) -> Iterator[str]:
    """Yield the directories below one that are written like this with dashes."""
    if not dashed:
        yield str(inside)
        return
    try:
        names = sorted(entry.name for entry in os.scandir(inside) if entry.is_dir())
    except OSError:
        return
    for name in names:
        written = _dashed(name)
        if written and (dashed == written or dashed.startswith(f"{written}-")):
            yield from _directories(inside / name, dashed[len(written) + 1 :])


def _dashed(name: str) -> str:
    return _OTHER.sub("-", name).strip("-")
