"""Progress of sending: how much of each session the server has, so that a growing transcript is not sent from its
beginning, and which messages were sent before there was a transcript, so that they are not stored twice.

It is stored in owner-only files, one for each session and one for each transcript file. An unreadable file counts as
nothing sent: the server ignores what it has, so sending again costs time and changes nothing.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TextIO

from esker.server.agents.private_folder import make_private
from esker.server.agents.transcript import Transcript, TranscriptEntry
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.errors import InvalidInput
from esker.server.core.json_input import Json, parse_json

_FOLDER = "sent"
_MOST_EARLY_MESSAGES = 1_000


class SendProgress:
    """The progress of sending to one server with one key; another server or key starts from nothing."""

    def __init__(self, settings: ClientSettings, *, again: bool = False) -> None:
        """With `again` everything counts as unsent until it is sent in this run."""
        self._folder = settings.state_dir / _FOLDER
        self._server = (settings.url.rstrip("/"), _hash(settings.key or ""))
        self._again = again

    @contextmanager
    def locked(self, transcript: Transcript, *, wait: bool = True) -> Generator[bool]:
        """Prevent other processes from sending this session while the block runs.

        Yields whether the lock was obtained: without `wait`, False while another process holds it.
        """
        path = self._session_file(transcript).with_suffix(".lock")
        file = _opened_lock(path)
        if file is None:  # without a writable folder there is no progress to protect
            yield True
            return
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def unsent(self, transcript: Transcript) -> list[TranscriptEntry]:
        """Return the messages after those that were sent; all of them if the sent ones have changed.

        Messages that were sent before there was a transcript keep the id of that time.
        """
        known = {} if self._again else _read(self._session_file(transcript))
        entries = self._with_early_ids(transcript)
        count = known.get("count")
        if not isinstance(count, int) or not 0 < count <= len(entries):
            return entries
        same = known.get("digest") == _digest(transcript.entries[:count])
        return entries[count:] if same else entries

    def advance(self, transcript: Transcript, count: int) -> None:
        """Record that the server, or a spool that will send them, has the first `count` messages."""
        known: dict[str, Json] = {"count": count, "digest": _digest(transcript.entries[:count])}
        _write(self._session_file(transcript), known)

    def record_early(self, transcript: Transcript, entry: TranscriptEntry) -> None:
        """Record a message that was sent while the transcript did not contain it."""
        path = self._early_file(transcript)
        known: dict[str, Json] = {entry.external_id: [entry.role, _words_hash(entry)]}
        with self.locked(transcript):
            _write(path, dict(list((_read(path) | known).items())[-_MOST_EARLY_MESSAGES:]))

    def _with_early_ids(self, transcript: Transcript) -> list[TranscriptEntry]:
        early = _read(self._early_file(transcript))
        if not early:
            return transcript.entries
        names: dict[str, list[str]] = {}
        for name, content in early.items():
            names.setdefault(repr(content), []).append(name)
        entries = list(transcript.entries)
        for index, entry in enumerate(entries):
            if ids := names.get(repr([entry.role, _words_hash(entry)])):
                entries[index] = replace(entry, external_id=ids.pop(0))
        return entries

    def is_unchanged(self, path: Path, stamp: list[int] | None) -> bool:
        """Return whether all of a file was sent when it had this stamp."""
        if self._again or stamp is None:
            return False
        # Compare as text, since in Python True equals 1.
        return json.dumps(_read(self._stamp_file(path)).get("stamp")) == json.dumps(stamp)

    def finish(self, path: Path, stamp: list[int] | None) -> None:
        """Record that all of a file was sent when it had this stamp."""
        if stamp is not None:
            _write(self._stamp_file(path), {"stamp": [*stamp]})

    def _session_file(self, transcript: Transcript) -> Path:
        return self._state_file("session", transcript.client, transcript.external_id)

    def _early_file(self, transcript: Transcript) -> Path:
        return self._state_file("early", transcript.client, transcript.external_id)

    def _stamp_file(self, path: Path) -> Path:
        return self._state_file("file", os.path.realpath(path))

    def _state_file(self, *names: str) -> Path:
        return self._folder / f"{_hash(*self._server, *names)}.json"


def _words_hash(entry: TranscriptEntry) -> str | None:
    """Return a hash of a message's words, None if it has more than text."""
    content = entry.content if isinstance(entry.content, list) else [{"type": "text", "text": entry.content}]
    texts = [
        block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None for block in content
    ]
    words = [text.strip() for text in texts if isinstance(text, str)]
    return _hash(*words) if words and len(words) == len(texts) else None


def _opened_lock(path: Path) -> TextIO | None:
    try:
        make_private(path.parent.parent, path.parent)
        return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "w")
    except OSError:
        return None


def _write(path: Path, known: dict[str, Json]) -> None:
    """Write a file atomically; if that fails, nothing counts as sent the next time."""
    with suppress(OSError):
        make_private(path.parent.parent, path.parent)
        with NamedTemporaryFile("w", dir=path.parent, prefix=".", suffix=".new", delete=False) as file:
            new = Path(file.name)
            try:
                file.write(json.dumps(known))
                file.close()
                new.replace(path)
            finally:
                new.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Json]:
    try:
        value = parse_json(path.read_bytes())
    except (OSError, InvalidInput):
        return {}
    return value if isinstance(value, dict) else {}


def _digest(entries: list[TranscriptEntry]) -> str:
    whole = hashlib.sha256()
    for entry in entries:
        whole.update(f"{entry.external_id}\0{entry.role}\0".encode("utf-8", "replace"))
        whole.update(json.dumps(entry.content, sort_keys=True).encode() + b"\0")
    return whole.hexdigest()


def _hash(*names: str) -> str:
    return hashlib.sha256("\0".join(names).encode("utf-8", "surrogatepass")).hexdigest()
