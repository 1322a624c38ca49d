"""The transcripts of Claude Code: JSON lines, a message each among much else.

The format is internal to Claude Code and drifts, so what is not known is skipped and counted, and a broken line never
stops a file. Sub-agents and side chains become sessions of their own.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from server.clients.project import project_of
from server.clients.transcript import Entry, Reading, Transcript
from server.core.blocks import as_blocks
from server.core.errors import InvalidInput
from server.core.json_input import Json, clean_text, parse_json

CLIENT = "claude-code"

Line = dict[str, Json]

# Every line of Claude Code has one of these.
_MARKS = frozenset({"uuid", "sessionId", "parentUuid", "leafUuid", "messageId", "isSidechain"})
# Lines that are messages by their type, but that nobody said.
_UNSAID = {
    "isMeta": "meta line",
    "isCompactSummary": "compaction summary",
    "isVisibleInTranscriptOnly": "shown in the transcript only",
    "isApiErrorMessage": "API error",
}


def read_transcript(path: Path) -> Reading:
    """Read a file. Raises OSError when it cannot be opened."""
    skipped: Counter[str] = Counter()
    broken: list[int] = []
    transcripts: dict[str, Transcript] = {}
    last: datetime | None = None
    recognised = False
    for number, line in _lines(path, skipped, broken):
        recognised = recognised or bool(_MARKS & line.keys()) or isinstance(line.get("message"), dict)
        entry = _entry(line, f"{path.stem}:{number}", last, skipped)
        if entry is None:
            continue
        last = entry.sent_at
        name = _session(line, path)
        transcript = transcripts.setdefault(name, Transcript(CLIENT, name))
        transcript.cwd = transcript.cwd or _text(line.get("cwd"))
        transcript.entries.append(entry)
    for transcript in transcripts.values():
        transcript.project = project_of(transcript.cwd) if transcript.cwd else None
    return Reading(list(transcripts.values()), skipped, broken, recognised or path.stat().st_size == 0)


def _lines(path: Path, skipped: Counter[str], broken: list[int]) -> Iterator[tuple[int, Line]]:
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            if not raw.strip():
                continue
            try:
                value = parse_json(raw)
            except InvalidInput:
                skipped["broken line"] += 1
                broken.append(number)
                continue
            if isinstance(value, dict):
                yield number, value
            else:
                skipped["not an object"] += 1


def _entry(line: Line, place: str, last: datetime | None, skipped: Counter[str]) -> Entry | None:
    if reason := _reason_to_skip(line):
        skipped[reason] += 1
        return None
    message = line["message"]
    assert isinstance(message, dict)  # the reason to skip would be another one
    content = _content(message.get("content"), skipped)
    if not content:
        skipped["message without content"] += 1
        return None
    sent_at = _moment(line.get("timestamp"))
    if sent_at is None:
        skipped["unreadable time (the message is kept)"] += 1
    # A line without a name of its own is named after its place and its words, so that reading again finds it again.
    fallback = hashlib.sha256(f"{place}\0{content}".encode("utf-8", "replace")).hexdigest()[:32]
    return Entry(_text(line.get("uuid")) or fallback, _role(line, message, content), content, sent_at or last)


def _role(line: Line, message: Line, content: Json) -> str:
    """Return who speaks. To a sub-agent or in a side chain it is the assistant who gives the orders, not a person."""
    apart = line.get("isSidechain") is True or bool(_text(line.get("agentId")))
    answers = isinstance(content, list) and any(isinstance(b, dict) and b["type"] == "tool_result" for b in content)
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


def _content(content: Json, skipped: Counter[str]) -> Json:
    """Return content that the server takes: text, or blocks; stray strings become text, what is no block goes."""
    if isinstance(content, str):
        return content if content.strip() else None
    if not isinstance(content, list):
        return None
    blocks: list[Json] = []
    for part in content:
        if isinstance(part, str):
            blocks.append({"type": "text", "text": part})
            continue
        try:
            blocks += as_blocks([part])
        except InvalidInput:
            skipped["block that is none"] += 1
    return blocks


def _session(line: Line, path: Path) -> str:
    """Return the session of a line; the lines of a sub-agent or a side chain belong to a session of their own."""
    session = _text(line.get("sessionId")) or clean_text(path.stem)
    if agent := _text(line.get("agentId")):
        return f"{session}/agent-{agent}"
    return f"{session}/sidechain" if line.get("isSidechain") is True else session


def _moment(value: Json) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment if moment and 1970 <= moment.year < 2200 else None


def _text(value: Json) -> str | None:
    return value.strip()[:512] or None if isinstance(value, str) else None
