"""The sessions of Copilot CLI: a folder each, with a file of events."""

from collections.abc import Iterator
from pathlib import Path

from server.clients.content import Block, as_list, as_object, as_text, call_block, joined, result_block, text_block
from server.clients.gathering import Gathering, stem
from server.clients.lines import Line, Opener, json_lines
from server.clients.regular_file import opened_plain
from server.clients.transcript import Reading
from server.core.json_input import Json, clean_text

CLIENT = "copilot"

_FILE = "events.jsonl"
_KINDS = ("session.", "user.", "assistant.", "tool.", "hook.", "system.", "subagent.")


def read_transcript(path: Path, opener: Opener = opened_plain) -> Reading:
    """Read a file; what a sub-agent says in it is a session of its own. Raises OSError when it cannot be opened."""
    gathering = Gathering(CLIENT, path)
    session = clean_text(path.parent.name) if path.name.startswith(_FILE) else stem(path)
    place, started = stem(path), False
    for number, line in json_lines(path, gathering.left_out, opener):
        gathering.recognised = gathering.recognised or recognises(line)
        data = as_object(line.get("data"))
        if line.get("type") in ("session.start", "session.resume"):
            context = as_object(data.get("context"))
            if not started:
                session, started = as_text(data.get("sessionId")) or session, True
            gathering.locate(session, context.get("cwd", context.get("gitRoot")))
        _take(gathering, session, f"{place}:{number}", line, data)
    return gathering.reading()


def recognises(line: Line) -> bool:
    """Tell whether Copilot CLI wrote a line."""
    kind = line.get("type")
    return isinstance(kind, str) and kind.startswith(_KINDS) and isinstance(line.get("data"), dict)


def _take(gathering: Gathering, session: str, place: str, line: Line, data: Line) -> None:
    agent = as_text(data.get("parentToolCallId"))
    name, at = as_text(line.get("id")), line.get("timestamp", "")
    kind, role = line.get("type"), "assistant"
    blocks: list[Json] = []
    match kind:
        case "user.message":
            role = "assistant" if agent else "user"
            blocks += _texts(data.get("content"))
        case "assistant.message":
            blocks += [*_texts(data.get("content")), *_calls(data, place)]
        case "tool.execution_complete":
            role = "user"
            blocks += [_result(data, place)]
        case _:
            gathering.skip(f"{kind} line" if isinstance(kind, str) else "untyped line")
            return
    own = f"{session}/agent-{agent}" if agent else session
    gathering.add(own, role, blocks, name=name, place=place, at=at)
    if agent:
        gathering.locate(own, gathering.transcript(session).cwd)


def _texts(content: Json) -> Iterator[Block]:
    if text := joined(content):
        yield text_block(text)


def _calls(data: Line, place: str) -> Iterator[Block]:
    for number, request in enumerate(map(as_object, as_list(data.get("toolRequests")))):
        if name := as_text(request.get("name")):
            yield call_block(as_text(request.get("toolCallId")) or f"{place}/{number}", name, request.get("arguments"))


def _result(data: Line, place: str) -> Block:
    shown = data.get("result") or data.get("error")
    failed = data.get("success") is False
    return result_block(as_text(data.get("toolCallId")) or place, joined(shown), failed=failed)
