"""The transcript builder, shared by all readers: it turns messages into entries and counts what it skips."""

import hashlib
from collections.abc import Container
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from esker.server.agents.content import Block, as_text, joined, text_block
from esker.server.agents.lines import SkippedLines
from esker.server.agents.project import project_of
from esker.server.agents.transcript import ParsedTranscripts, Transcript, TranscriptEntry
from esker.server.core.conversation.injected import strip_injected, strip_ours
from esker.server.core.conversation.valid_blocks import as_blocks
from esker.server.core.errors import InvalidInput
from esker.server.core.json_input import Json, clean_text

UNKNOWN_SPEAKER = "message without a role"
_LONGEST_ID = 512
_LONGEST_CWD = 4_096
_MILLISECONDS = 100_000_000_000  # as epoch seconds the year 5138; larger numbers are milliseconds


class TranscriptBuilder:
    """The sessions of a file, built up while it is read."""

    def __init__(self, client: str, path: Path) -> None:
        """Begin a file that `client` wrote."""
        self.left_out = SkippedLines()
        self.recognised = False
        self.unfinished = False
        self._client = client
        self._path = path
        self._transcripts: dict[str, Transcript] = {}
        self._ids: dict[str, set[str]] = {}
        self._last: datetime | None = None

    def skip(self, reason: str, count: int = 1) -> None:
        """Count something that is left out."""
        if count:
            self.left_out.skipped[reason[:80]] += count

    def transcript(self, session: str) -> Transcript:
        """Return the transcript of a session, a new one on first use."""
        session = fitting(session)
        if session not in self._transcripts:
            self._transcripts[session] = Transcript(self._client, session)
            self._ids[session] = set()
        return self._transcripts[session]

    def set_directory(self, session: str, cwd: Json) -> None:
        """Set the directory of a session, unless one is known already."""
        transcript = self.transcript(session)
        transcript.cwd = transcript.cwd or _directory(cwd)

    def set_project(self, session: str, project: str | None) -> None:
        """Set the project of a session; without one it is that of its directory."""
        self.transcript(session).project = project

    def assume_time(self, moment: datetime | None) -> None:
        """Set the time of the messages before the first one that has a time of its own."""
        self._last = self._last or moment

    def add(
        self,
        session: str,
        role: str,
        content: Json,
        *,
        name: str | None = None,
        position: str = "",
        at: Json = None,
        cwd: Json = None,
        unique: bool = False,
    ) -> bool:
        """Add a message unless it is empty or its id is a duplicate; return whether it had content.

        `name` is the client's own id. Without one, the id is a hash of position and content, so that it is the same at
        the next reading. A message without a readable time gets that of the one before. `cwd` is the session's
        directory at that time; `unique`: the client gives that id to no message in another session, except in forks.
        """
        own = _without_packs(content) if role == "user" else content
        # A pack beside words of the user; one that is alone is counted like other injected context.
        self.skip("injected context", int(bool(joined(own).strip()) and own != content))
        kept = self._cleaned(own if joined(own).strip() else content)
        if not kept:
            return False
        moment = as_moment(at)
        if moment is None and at is not None:
            self.skip("unreadable time (the message is kept)")
        self._last = moment or self._last
        unique = unique and bool(name)
        name = fitting(name) if name else digest(position, str(kept))
        transcript = self.transcript(session)
        if name in self._ids[transcript.external_id]:
            self.skip("duplicate message")
            return True
        self._ids[transcript.external_id].add(name)
        transcript.entries.append(TranscriptEntry(name, role, kept, self._last, _directory(cwd), unique))
        return True

    def drop(self, session: str, names: Container[str], reason: str) -> None:
        """Remove messages that were already added."""
        transcript = self.transcript(session)
        kept = [entry for entry in transcript.entries if entry.external_id not in names]
        self.skip(reason, len(transcript.entries) - len(kept))
        transcript.entries = kept

    def build(self) -> ParsedTranscripts:
        """Return the sessions that have messages, with a time for every message."""
        found = [transcript for transcript in self._transcripts.values() if transcript.entries]
        status = self._path.stat()
        changed = as_moment(status.st_mtime) if status.st_mtime > 0 else None
        for transcript in found:
            transcript.project = transcript.project or (project_of(transcript.cwd) if transcript.cwd else None)
            _date(transcript, changed)
        recognised = self.recognised or status.st_size == 0
        return ParsedTranscripts(found, self.left_out.skipped, self.left_out.broken, recognised, self.unfinished)

    def _cleaned(self, content: Json) -> Json:
        """Return content that the server accepts: text, or blocks; strings in a list become text blocks.

        Invalid blocks, and texts that a program injected as a whole, are left out and counted.
        """
        if isinstance(content, str):
            return content if self._is_said(content) else None
        blocks: list[Json] = []
        injected = self.left_out.skipped["injected context"]
        for part in content if isinstance(content, list) else []:
            block = self._block(text_block(part) if isinstance(part, str) else part)
            if block:
                blocks.append(block)
        if not blocks and injected == self.left_out.skipped["injected context"]:
            self.skip("message without content")
        return blocks

    def _block(self, part: Json) -> Block | None:
        try:
            [block] = as_blocks([part])
        except InvalidInput:
            self.skip("invalid block")
            return None
        if block["type"] != "text":
            return block
        text = str(block["text"])
        return block if text.strip() and not self._is_injected(text) else None

    def _is_said(self, text: str) -> bool:
        if not text.strip():
            self.skip("message without content")
            return False
        return not self._is_injected(text)

    def _is_injected(self, text: str) -> bool:
        if strip_injected(text):
            return False
        self.skip("injected context")
        return True


def _without_packs(content: Json) -> Json:
    """Return the content of a user's message without our packs, which come back in what a client sends for the user."""
    match content:
        case str():
            stripped = strip_ours(content)
            return stripped.strip() if isinstance(stripped, str) and stripped != content else content
        case list():
            return [_without_packs(part) for part in content]
        case {"type": "text", "text": str(text)}:
            return content | {"text": _without_packs(text)}
        case _:
            return content


def _date(transcript: Transcript, changed: datetime | None) -> None:
    """Give leading messages without a time the first known time; if none is known, that of the file's last change,
    which no message can be later than."""
    known = next((entry.sent_at for entry in transcript.entries if entry.sent_at), changed)
    transcript.entries = [entry if entry.sent_at else replace(entry, sent_at=known) for entry in transcript.entries]


def _directory(cwd: Json) -> str | None:
    found = as_text(cwd)
    return found[:_LONGEST_CWD] if found else None


def as_moment(value: Json) -> datetime | None:
    """Return a time given in ISO 8601, or as seconds or milliseconds since 1970; None for anything else."""
    try:
        match value:
            case str():
                moment = datetime.fromisoformat(value)
            case bool():
                return None
            case int() | float():
                moment = datetime.fromtimestamp(value / 1_000 if value > _MILLISECONDS else value, UTC)
            case _:
                return None
    except (ValueError, OverflowError, OSError):
        return None
    if not 1970 <= moment.year < 2200:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def fitting(name: str) -> str:
    """Return a name short enough for an external id; a longer one is replaced by its hash."""
    return name if len(name) <= _LONGEST_ID else digest(name)


def digest(*parts: str) -> str:
    """Return a short hash of strings."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


def stem(path: Path) -> str:
    """Return the name of a file without its suffixes, the same for `x.jsonl` and `x.jsonl.zst`."""
    return clean_text(path.name.removesuffix(".zst").rpartition(".")[0] or path.name)
