"""The sessions of Copilot CLI: a folder each, with a file of events."""

from collections.abc import Iterator
from pathlib import Path

from esker.server.agents.content import (
    Block,
    answered,
    as_list,
    as_object,
    as_text,
    call_block,
    joined,
    result_block,
    text_block,
)
from esker.server.agents.lines import JsonLine, Opener, json_lines
from esker.server.agents.reader_entries import Gathering, stem
from esker.server.agents.regular_file import opened_plain
from esker.server.agents.transcript import ParsedTranscripts
from esker.server.core.json_input import Json, clean_text

CLIENT = "copilot"

_FILE = "events.jsonl"
_STARTS = ("session.start", "session.resume")
_PLACES = (*_STARTS, "session.context_changed")
_KINDS = ("session.", "user.", "assistant.", "tool.", "hook.", "system.", "subagent.")


def read_transcript(path: Path, opener: Opener = opened_plain) -> ParsedTranscripts:
    """Read a file; what a sub-agent says in it is a session of its own. Raises OSError when it cannot be opened."""
    gathering = Gathering(CLIENT, path)
    events = _Events(gathering, path)
    for number, line in json_lines(path, gathering.left_out, opener):
        gathering.recognised = gathering.recognised or recognises(line)
        events.take(number, line, as_object(line.get("data")))
    return gathering.reading()


def recognises(line: JsonLine) -> bool:
    """Tell whether Copilot CLI wrote a line."""
    kind = line.get("type")
    return isinstance(kind, str) and kind.startswith(_KINDS) and isinstance(line.get("data"), dict)


class _Events:
    """The events of a file while they are read."""

    def __init__(self, gathering: Gathering, path: Path) -> None:
        self._gathering = gathering
        self._place = stem(path)
        self._session = clean_text(path.parent.name) if path.name.startswith(_FILE) else stem(path)
        self._started = False
        self._here: str | None = None
        self._called: set[str] = set()

    def take(self, number: int, line: JsonLine, data: JsonLine) -> None:
        """Take an event."""
        place, kind = f"{self._place}:{number}", line.get("type")
        match kind:
            case "user.message":
                role, blocks = "user", [*_texts(data.get("content"))]
            case "assistant.message":
                role, blocks = "assistant", [*_texts(data.get("content")), *self._calls(data, place)]
            case "tool.execution_start" if as_text(data.get("toolCallId")) not in self._called:
                # What a person has run is asked for by no message.
                role, blocks = "assistant", [*self._calls({"toolRequests": [data]}, place)]
            case "tool.execution_complete":
                role, blocks = "user", [_result(data, place)]
            case _:
                self._note(kind, data)
                self._gathering.skip(f"{kind} line" if isinstance(kind, str) else "untyped line")
                return
        self._add(line, data, place, role, blocks)

    def _add(self, line: JsonLine, data: JsonLine, place: str, role: str, blocks: list[Block]) -> None:
        agent = as_text(data.get("parentToolCallId"))
        session = f"{self._session}/agent-{agent}" if agent else self._session
        name, at = as_text(line.get("id")), line.get("timestamp", "")
        speaker = "assistant" if agent and line.get("type") == "user.message" else role
        self._gathering.add(session, speaker, [*blocks], name=name, place=place, at=at, cwd=self._here)
        if agent:
            self._gathering.locate(session, self._gathering.transcript(self._session).cwd)

    def _note(self, kind: Json, data: JsonLine) -> None:
        """Note what an event tells of the session: its name, and where it is by now."""
        if kind not in _PLACES:
            return
        if kind in _STARTS and not self._started:
            self._session, self._started = as_text(data.get("sessionId")) or self._session, True
        context = as_object(data.get("context")) or data
        self._here = as_text(context.get("cwd")) or as_text(context.get("gitRoot")) or self._here
        self._gathering.locate(self._session, self._here)

    def _calls(self, data: JsonLine, place: str) -> Iterator[Block]:
        for number, request in enumerate(map(as_object, as_list(data.get("toolRequests")))):
            call = as_text(request.get("toolCallId")) or f"{place}/{number}"
            name = as_text(request.get("name")) or as_text(request.get("toolName"))
            if name and call not in self._called:
                self._called.add(call)
                yield call_block(call, name, request.get("arguments"))


def _texts(content: Json) -> Iterator[Block]:
    if text := joined(content):
        yield text_block(text)


def _result(data: JsonLine, place: str) -> Block:
    shown = data.get("result") or data.get("error")
    failed = data.get("success") is False
    return result_block(as_text(data.get("toolCallId")) or place, answered(shown), failed=failed)
