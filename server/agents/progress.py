"""How far each session was sent to a server, so that a transcript that grows is not sent from its beginning; and what
was told of a session before it had a transcript, so that it is not there twice when one comes.

It is kept in files, one for each session and one for each transcript file, that only their owner may read. What cannot
be read there counts as nothing sent: the server knows what it has, so sending again costs time and changes nothing.
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

from esker.server.agents.transcript import Transcript, TranscriptEntry
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.errors import InvalidInput
from esker.server.core.json_input import Json, parse_json

_FOLDER = "sent"
_MOST_TOLD = 1_000


class SentBefore:
    """What was sent to one server under one key; another server or key begins anew."""

    def __init__(self, settings: ClientSettings, *, again: bool = False) -> None:
        """With `again` nothing counts as sent until it is sent now."""
        self._folder = settings.state_dir / _FOLDER
        self._server = (settings.url.rstrip("/"), _hash(settings.key or ""))
        self._again = again

    @contextmanager
    def alone(self, transcript: Transcript, *, wait: bool = True) -> Generator[bool]:
        """Keep every other process from sending this session while the block runs.

        Yield whether that is so: without `wait` it is not while another process is at it.
        """
        path = self._of_session(transcript).with_suffix(".lock")
        file = _opened_to_lock(path)
        if file is None:  # where nothing can be written, nothing is known of what was sent either
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
        """Return the messages behind those that were sent, all of them when the sent ones are not these.

        What was told before there was a transcript has the name by which it was told.
        """
        known = {} if self._again else _read(self._of_session(transcript))
        entries = self._as_told(transcript)
        count = known.get("count")
        if not isinstance(count, int) or not 0 < count <= len(entries):
            return entries
        same = known.get("digest") == _digest(transcript.entries[:count])
        return entries[count:] if same else entries

    def advance(self, transcript: Transcript, count: int) -> None:
        """Note that the server, or a spool that will send them, has the first `count` messages."""
        known: dict[str, Json] = {"count": count, "digest": _digest(transcript.entries[:count])}
        _write(self._of_session(transcript), known)

    def tell(self, transcript: Transcript, entry: TranscriptEntry) -> None:
        """Note that a message was told of a session whose transcript did not have it."""
        path = self._of_told(transcript)
        known: dict[str, Json] = {entry.external_id: [entry.role, _words(entry)]}
        with self.alone(transcript):
            _write(path, dict(list((_read(path) | known).items())[-_MOST_TOLD:]))

    def _as_told(self, transcript: Transcript) -> list[TranscriptEntry]:
        told = _read(self._of_told(transcript))
        if not told:
            return transcript.entries
        names: dict[str, list[str]] = {}
        for name, said in told.items():
            names.setdefault(repr(said), []).append(name)
        entries = list(transcript.entries)
        for index, entry in enumerate(entries):
            if there := names.get(repr([entry.role, _words(entry)])):
                entries[index] = replace(entry, external_id=there.pop(0))
        return entries

    def is_unchanged(self, path: Path, stamp: list[int] | None) -> bool:
        """Tell whether all of a file was sent when it had this stamp."""
        if self._again or stamp is None:
            return False
        # As text, since `true` is no size of a file and equals 1.
        return json.dumps(_read(self._of_file(path)).get("stamp")) == json.dumps(stamp)

    def finish(self, path: Path, stamp: list[int] | None) -> None:
        """Note that all of a file was sent that it held when it had this stamp."""
        if stamp is not None:
            _write(self._of_file(path), {"stamp": [*stamp]})

    def _of_session(self, transcript: Transcript) -> Path:
        return self._named("session", transcript.client, transcript.external_id)

    def _of_told(self, transcript: Transcript) -> Path:
        return self._named("told", transcript.client, transcript.external_id)

    def _of_file(self, path: Path) -> Path:
        return self._named("file", os.path.realpath(path))

    def _named(self, *names: str) -> Path:
        return self._folder / f"{_hash(*self._server, *names)}.json"


def _words(entry: TranscriptEntry) -> str | None:
    """Return a hash of what a message says, if text is all that it is."""
    content = entry.content if isinstance(entry.content, list) else [{"type": "text", "text": entry.content}]
    texts = [
        block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None for block in content
    ]
    words = [text.strip() for text in texts if isinstance(text, str)]
    return _hash(*words) if words and len(words) == len(texts) else None


def _opened_to_lock(path: Path) -> TextIO | None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "w")
    except OSError:
        return None


def _write(path: Path, known: dict[str, Json]) -> None:
    """Write a file as a whole or not at all; where that cannot be, nothing is known the next time."""
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
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
