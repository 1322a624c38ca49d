"""The transcripts of Cursor's agent: JSON lines of a role and content, without ids and times.

Cursor keeps them in a folder named after the project's directory, with dashes in place of all but letters and digits;
the directory can be determined only on a machine where it exists.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from esker.server.agents.content import Block, arguments, as_list, as_text, joined, text_block
from esker.server.agents.lines import JsonLine, Opener, json_lines
from esker.server.agents.reader_entries import TranscriptBuilder, stem
from esker.server.agents.regular_file import opened_plain
from esker.server.agents.transcript import ParsedTranscripts
from esker.server.core.json_input import Json, as_object, clean_text

CLIENT = "cursor"

_SPEAKERS = ("user", "assistant")
_ROLES = (*_SPEAKERS, "tool")
_OTHER = re.compile(r"[^A-Za-z0-9]+")
_FOLDER = "agent-transcripts"
_CALLS = ("tool_use", "tool_call")


def read_transcript(path: Path, opener: Opener = opened_plain) -> ParsedTranscripts:
    """Read a file, which is one session; a sub-agent's is a session of its own. Raises OSError."""
    builder = TranscriptBuilder(CLIENT, path)
    parent = _parent(path)
    session = f"{parent}/agent-{stem(path)}" if parent else stem(path)
    builder.set_directory(session, _directory(path))
    for number, line in json_lines(path, builder.left_out, opener):
        builder.recognised = builder.recognised or recognises(line)
        role = _role(line)
        if role is None:
            kind = line.get("type")
            builder.skip(f"{kind} line" if isinstance(kind, str) else "untyped line")
            continue
        position = f"{session}:{number}"
        content = [*_blocks(_content(line), position)]
        if role == "tool":
            role, content = "user", _as_results(content)
        answers = any(as_object(block).get("type") == "tool_result" for block in content)
        speaker = "assistant" if parent and not answers else role
        name = as_text(line.get("id")) or as_text(line.get("uuid"))
        builder.add(session, speaker, content, name=name, position=position, at=line.get("timestamp"))
    return builder.build()


def recognises(line: JsonLine) -> bool:
    """Return whether Cursor wrote a line."""
    return line.get("role") in _SPEAKERS and "content" in as_object(line.get("message")) and "uuid" not in line


def _role(line: JsonLine) -> str | None:
    inner = as_object(line.get("message")).get("role")
    return next((str(role) for role in (line.get("role"), inner, line.get("type")) if role in _ROLES), None)


def _content(line: JsonLine) -> Json:
    message = line.get("message")
    inner = message.get("content") if isinstance(message, dict) else message
    return line.get("content", line.get("text")) if inner is None else inner


def _blocks(content: Json, position: str) -> Iterator[Json]:
    for number, part in enumerate([content] if isinstance(content, str) else as_list(content)):
        yield _block(part, f"{position}/{number}") if isinstance(part, dict) else part


def _as_results(content: list[Json]) -> list[Json]:
    """Return the content of a tool message, with all texts as a result."""
    others = [block for block in content if as_object(block).get("type") != "tool_result"]
    text = joined(others)
    answer: Block = {"type": "tool_result", "content": text}
    return [*(block for block in content if block not in others), *([answer] if text else [])]


def _block(part: Block, position: str) -> Json:
    kind = str(part.get("type")).replace("-", "_")
    if kind in _CALLS:
        call = as_text(part.get("id")) or as_text(part.get("toolCallId")) or position
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
    """Return the id of the session that started a sub-agent, or None if the file is not a sub-agent's."""
    if path.parent.name != "subagents":
        return None
    beside = sorted(path.parent.parent.glob("*.jsonl"))
    return stem(beside[0]) if len(beside) == 1 else clean_text(path.parent.parent.name)


def _directory(path: Path) -> str | None:
    """Return the directory of a transcript's project, or None if it does not exist on this machine."""
    folder = next((parent.parent for parent in path.parents if parent.name == _FOLDER), None)
    return next(_directories(Path("/"), _dashed(folder.name)), None) if folder else None


def _directories(inside: Path, dashed: str) -> Iterator[str]:
    """Yield the directories below one whose dashed form this is."""
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
