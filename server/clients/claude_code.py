"""The transcripts of Claude Code: JSON lines, a message each among much else.

The format is internal to Claude Code and drifts, so what is not known is skipped and counted, and a broken line never
stops a file. Sub-agents, which write beside their session or into a folder of it, and side chains become sessions of
their own.
"""

from collections.abc import Iterator
from pathlib import Path

from server.clients.content import as_list, as_text
from server.clients.gathering import Gathering, stem
from server.clients.lines import Line, Opener, json_document, json_lines
from server.clients.regular_file import opened_plain
from server.clients.transcript import Reading
from server.core.json_input import clean_text

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


def read_transcript(path: Path, opener: Opener = opened_plain) -> Reading:
    """Read a file. Raises OSError when it cannot be opened."""
    gathering = Gathering(CLIENT, path)
    place = stem(path)
    for number, line in _lines(path, gathering, opener):
        gathering.recognised = gathering.recognised or recognises(line)
        if reason := _reason_to_skip(line):
            gathering.skip(reason)
            continue
        message = line["message"]
        assert isinstance(message, dict)  # the reason to skip would be another one
        session = _session(line, path)
        gathering.add(
            session,
            _role(line, message, path),
            message.get("content"),
            name=as_text(line.get("uuid")),
            place=f"{place}:{number}",
            at=line.get("timestamp", ""),
        )
        gathering.locate(session, line.get("cwd"))
    return gathering.reading()


def recognises(line: Line) -> bool:
    """Tell whether Claude Code wrote a line."""
    return bool(_MARKS & line.keys()) or isinstance(line.get("message"), dict)


def _lines(path: Path, gathering: Gathering, opener: Opener) -> Iterator[tuple[int, Line]]:
    """Yield the lines of a transcript; sessions that were fetched from the web are one object that holds them."""
    if path.suffix != ".json":
        yield from json_lines(path, gathering.left_out, opener)
        return
    match json_document(path, gathering.left_out):
        case {"loglines": list(lines)}:
            yield from ((number, line) for number, line in enumerate(lines, start=1) if isinstance(line, dict))
        case _:
            pass


def _role(line: Line, message: Line, path: Path) -> str:
    """Return who speaks. To a sub-agent or in a side chain it is the assistant who gives the orders, not a person."""
    apart = line.get("isSidechain") is True or bool(_agent(line, path))
    answers = any(isinstance(b, dict) and b.get("type") == "tool_result" for b in as_list(message.get("content")))
    return "assistant" if apart and not answers else str(message["role"])


def _reason_to_skip(line: Line) -> str | None:
    kind = line.get("type")
    if kind not in ("user", "assistant"):
        return f"{str(kind)[:40]} line" if isinstance(kind, str) else "untyped line"
    for flag, reason in _UNSAID.items():
        if line.get(flag) is True:
            return reason
    message = line.get("message")
    if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
        return "message without a role"
    if message.get("model") == "<synthetic>":
        return "synthetic message"
    return None


def _session(line: Line, path: Path) -> str:
    """Return the session of a line; the lines of a sub-agent or a side chain belong to a session of their own."""
    session = as_text(line.get("sessionId")) or stem(path)
    if path.parent.name == "subagents":
        session = clean_text(path.parent.parent.name)
    if agent := _agent(line, path):
        return f"{session}/{_AGENT}{agent}"
    return f"{session}/sidechain" if line.get("isSidechain") is True else session


def _agent(line: Line, path: Path) -> str | None:
    named = stem(path).removeprefix(_AGENT) if path.name.startswith(_AGENT) else None
    return as_text(line.get("agentId")) or named
