"""The transcripts of Claude Code: JSON lines, a message each among much else.

The format is internal to Claude Code and drifts, so what is not known is skipped and counted, and a broken line never
stops a file. Sub-agents, which write beside their session or into a folder of it, and side chains become sessions of
their own.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from esker.server.agents.content import answered, as_list, as_object, as_text, call_block, result_block
from esker.server.agents.lines import JsonLine, Opener, json_document, json_lines
from esker.server.agents.reader_entries import Gathering, fitting, stem
from esker.server.agents.regular_file import opened_plain
from esker.server.agents.rewinds import Rewinds
from esker.server.agents.transcript import ParsedTranscripts
from esker.server.core.json_input import Json, clean_text

CLIENT = "claude-code"

# Every line of Claude Code has one of these.
_MARKS = frozenset({"uuid", "sessionId", "parentUuid", "leafUuid", "messageId", "isSidechain"})
# Lines that are messages by their type, but that nobody said.
_UNSAID = {
    "isMeta": "meta line",
    "isCompactSummary": "compaction summary",
    "isVisibleInTranscriptOnly": "shown in the transcript only",
    "isApiErrorMessage": "API error",
}
_AGENT = "agent-"
# A command that is a prompt, and what a person wrote behind it. Of one that the client itself carries out, such as
# `/model`, the name comes first.
_COMMAND = re.compile(
    r"\s*<command-message>[^<]*</command-message>\s*<command-name>(/?[^<\s]+)</command-name>"
    r"\s*<command-args>([\s\S]+)</command-args>\s*"
)


def read_transcript(path: Path, opener: Opener = opened_plain) -> ParsedTranscripts:
    """Read a file. Raises OSError when it cannot be opened."""
    file = _TranscriptFile(path)
    for number, line in _lines(path, file.gathering, opener):
        file.gathering.recognised = file.gathering.recognised or recognises(line)
        file.take(number, line)
    return file.reading()


def recognises(line: JsonLine) -> bool:
    """Tell whether Claude Code wrote a line."""
    return bool(_MARKS & line.keys()) or isinstance(line.get("message"), dict)


class _TranscriptFile:
    """A transcript while it is read."""

    def __init__(self, path: Path) -> None:
        self.gathering = Gathering(CLIENT, path)
        self._rewinds = Rewinds()
        self._name = stem(path)
        self._agent = self._name.removeprefix(_AGENT) if path.name.startswith(_AGENT) else None
        self._parent = clean_text(path.parent.parent.name) if path.parent.name == "subagents" else None

    def take(self, number: int, line: JsonLine) -> None:
        """Take a line; those of a sub-agent or a side chain belong to a session of their own."""
        session = self._parent or as_text(line.get("sessionId")) or self._name
        if agent := as_text(line.get("agentId")) or self._agent:
            self._say(f"{session}/{_AGENT}{agent}", number, line, apart=True)
        elif line.get("isSidechain") is True:
            self._say(f"{session}/sidechain", number, line, apart=True)
        else:
            said, asked = self._say(session, number, line, apart=False)
            self._rewinds.note(session, line, said=said, asked=asked)

    def reading(self) -> ParsedTranscripts:
        """Return what was read, without what a person took back."""
        for session, names in self._rewinds.taken_back().items():
            self.gathering.drop(session, set(map(fitting, names)), "message that was rewound")
        return self.gathering.reading()

    def _say(self, session: str, number: int, line: JsonLine, *, apart: bool) -> tuple[bool, bool]:
        """Keep what a line says; return whether it says something, and whether it is a person's prompt.

        To a sub-agent or in a side chain it is the assistant who gives the orders, not a person.
        """
        place = f"{self._name}:{number}"
        found = _message(line, place)
        if isinstance(found, str):
            self.gathering.skip(found)
            return False, False
        role, content = found
        answers = any(isinstance(block, dict) and block.get("type") == "tool_result" for block in as_list(content))
        speaker = "assistant" if apart and not answers else role
        name, at, cwd = as_text(line.get("uuid")), line.get("timestamp", ""), line.get("cwd")
        said = self.gathering.add(session, speaker, content, name=name, place=place, at=at, cwd=cwd)
        self.gathering.locate(session, cwd)
        return said, said and line.get("type") == "user" and not answers


def _lines(path: Path, gathering: Gathering, opener: Opener) -> Iterator[tuple[int, JsonLine]]:
    """Yield the lines of a transcript; sessions that were fetched from the web are one object that holds them."""
    if path.suffix != ".json":
        yield from json_lines(path, gathering.left_out, opener)
        return
    match json_document(path, gathering.left_out):
        case {"loglines": list(lines)}:
            yield from ((number, line) for number, line in enumerate(lines, start=1) if isinstance(line, dict))
        case _:
            pass


def _message(line: JsonLine, place: str) -> tuple[str, Json] | str:
    """Return who speaks in a line and what, or why nobody does."""
    match line.get("type"):
        case ("user" | "assistant") as kind:
            return _unsaid(line, kind) or _spoken(line, kind)
        case "attachment" if queued := _queued(line):
            return "user", queued.get("prompt")
        # Some builds wrote calls and results as lines of their own.
        case "tool_use":
            return "assistant", [call_block(as_text(line.get("id")) or place, line.get("name"), line.get("input"))]
        case "tool_result":
            answer = line.get("output", line.get("content"))
            return "user", [result_block(as_text(line.get("tool_use_id")) or place, answered(answer))]
        case kind:
            return f"{kind[:40]} line" if isinstance(kind, str) else "untyped line"


def _unsaid(line: JsonLine, kind: str) -> str | None:
    for flag, reason in _UNSAID.items():
        if line.get(flag) is True:
            return reason
    message = line.get("message")
    if not isinstance(message, dict) or (message.get("role") or kind) not in ("user", "assistant"):
        return "message without a role"
    return "synthetic message" if message.get("model") == "<synthetic>" else None


def _spoken(line: JsonLine, kind: str) -> tuple[str, Json]:
    message = as_object(line.get("message"))
    content = message.get("content")
    [only] = content if isinstance(content, list) and len(content) == 1 else [content]
    text = as_object(only).get("text", only)
    asked = _COMMAND.fullmatch(text) if kind == "user" and isinstance(text, str) else None
    if asked and asked[2].strip():
        content = f"{asked[1]} {asked[2].strip()}"
    return str(message.get("role") or kind), content


def _queued(line: JsonLine) -> JsonLine:
    """Return what a person wrote while the assistant was at work, which the model was shown in between, or nothing."""
    told = as_object(line.get("attachment"))
    asked = told.get("type") == "queued_command" and told.get("commandMode") in ("prompt", None)
    by_person = as_object(told.get("origin")).get("kind") in ("human", None) and told.get("isMeta") is not True
    return told if asked and by_person else {}
