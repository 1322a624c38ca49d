"""The sessions of Copilot CLI: one folder for each, with a file of events."""

from collections.abc import Iterator
from pathlib import Path

from esker.server.agents.content import (
    Block,
    as_list,
    as_text,
    call_block,
    joined,
    result_block,
    result_text,
    text_block,
)
from esker.server.agents.lines import JsonLine, Opener, json_lines
from esker.server.agents.project import repository_of
from esker.server.agents.reader_entries import TranscriptBuilder, stem
from esker.server.agents.regular_file import opened_plain
from esker.server.agents.transcript import ParsedTranscripts
from esker.server.core.json_input import Json, as_object, clean_text
from esker.server.core.project_names import project_name

CLIENT = "copilot"

_FILE = "events.jsonl"
# Beginnings of the sources of messages that nobody typed.
_PROGRAMS = ("skill", "system", "autopilot", "agent", "schedule", "hook")
_STARTS = ("session.start", "session.resume")
_LOCATED = (*_STARTS, "session.context_changed")
_KINDS = ("session.", "user.", "assistant.", "tool.", "hook.", "system.", "subagent.")


def read_transcript(path: Path, opener: Opener = opened_plain) -> ParsedTranscripts:
    """Read a file; each sub-agent in it is a session of its own. Raises OSError when it cannot be opened."""
    builder = TranscriptBuilder(CLIENT, path)
    events = _Events(builder, path)
    for number, line in json_lines(path, builder.left_out, opener):
        builder.recognised = builder.recognised or recognises(line)
        events.add(number, line, as_object(line.get("data")))
    return builder.build()


def recognises(line: JsonLine) -> bool:
    """Return whether Copilot CLI wrote a line."""
    kind = line.get("type")
    return isinstance(kind, str) and kind.startswith(_KINDS) and isinstance(line.get("data"), dict)


class _Events:
    """The events of a file while they are read."""

    def __init__(self, builder: TranscriptBuilder, path: Path) -> None:
        self._builder = builder
        self._position = stem(path)
        self._session = clean_text(path.parent.name) if path.name.startswith(_FILE) else stem(path)
        self._started = False
        self._current_cwd: str | None = None
        self._called: set[str] = set()

    def add(self, number: int, line: JsonLine, data: JsonLine) -> None:
        """Add an event."""
        position, kind = f"{self._position}:{number}", line.get("type")
        match kind:
            case "user.message" if program := _program(data):
                self._builder.skip(f"message of {program}")
                return
            case "user.message":
                role, blocks = "user", [*_texts(data.get("content"))]
            case "assistant.message":
                role, blocks = "assistant", [*_texts(data.get("content")), *self._calls(data, position)]
            case "tool.execution_start" if as_text(data.get("toolCallId")) not in self._called:
                # A tool that the user ran has no message that requests it.
                role, blocks = "assistant", [*self._calls({"toolRequests": [data]}, position)]
            case "tool.execution_complete":
                role, blocks = "user", [_result(data, position)]
            case _:
                self._note(kind, data)
                self._builder.skip(f"{kind} line" if isinstance(kind, str) else "untyped line")
                return
        self._add(line, data, position, role, blocks)

    def _add(self, line: JsonLine, data: JsonLine, position: str, role: str, blocks: list[Block]) -> None:
        agent = as_text(data.get("parentToolCallId"))
        session = f"{self._session}/agent-{agent}" if agent else self._session
        name, at = as_text(line.get("id")), line.get("timestamp", "")
        speaker = "assistant" if agent and line.get("type") == "user.message" else role
        self._builder.add(session, speaker, [*blocks], name=name, position=position, at=at, cwd=self._current_cwd)
        if agent:
            self._builder.set_directory(session, self._builder.transcript(self._session).cwd)

    def _note(self, kind: Json, data: JsonLine) -> None:
        """Update the session's id and current directory from an event."""
        if kind not in _LOCATED:
            return
        if kind in _STARTS and not self._started:
            self._session, self._started = as_text(data.get("sessionId")) or self._session, True
        context = as_object(data.get("context")) or data
        self._current_cwd = as_text(context.get("cwd")) or as_text(context.get("gitRoot")) or self._current_cwd
        self._builder.set_directory(self._session, self._current_cwd)
        begun = self._builder.transcript(self._session)
        if begun.project is None and (named := as_text(context.get("repository"))):
            here = repository_of(begun.cwd) if begun.cwd else None
            self._builder.set_project(self._session, here or project_name(named))

    def _calls(self, data: JsonLine, position: str) -> Iterator[Block]:
        for number, request in enumerate(map(as_object, as_list(data.get("toolRequests")))):
            call = as_text(request.get("toolCallId")) or f"{position}/{number}"
            name = as_text(request.get("name")) or as_text(request.get("toolName"))
            if name and call not in self._called:
                self._called.add(call)
                yield call_block(call, name, request.get("arguments"))


def _program(data: JsonLine) -> str | None:
    """Return the program that gave the assistant a message in the user's place, such as a skill, or None."""
    source = as_text(data.get("source")) or ""
    return source if source.startswith(_PROGRAMS) else None


def _texts(content: Json) -> Iterator[Block]:
    if text := joined(content):
        yield text_block(text)


def _result(data: JsonLine, position: str) -> Block:
    shown = data.get("result") or data.get("error")
    failed = data.get("success") is False
    return result_block(as_text(data.get("toolCallId")) or position, result_text(shown), failed=failed)
