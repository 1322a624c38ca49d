"""The spool: parcels that could not be sent, kept in owner-only files with masked contents until the server is back.

A parcel is deleted after the server has accepted it. Sending it twice changes nothing, since messages and events have
ids, so a process killed in between neither loses nor duplicates anything. The spool is bounded: when it is full,
messages stay unread in their transcript and are sent from there. Messages without a transcript always go through the
spool.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Literal, cast

from esker.server.agents.api import Api
from esker.server.agents.private_folder import make_private
from esker.server.core.errors import Unavailable
from esker.server.core.http_answers import ServerRefused
from esker.server.core.redaction import redact, redact_content, redact_json, redact_name

MOST_BYTES = 64 * 1024 * 1024
_MOST_PARCELS = 20_000
_ID_FIELDS = ("external_id", "dedupe_key")
# Statuses that the message itself causes; any other may be transient, or come from another program at the address.
_PERMANENT = (413, 422)
# The status of a session that this key may not write, such as one of another project. Another key may send it later.
_FORBIDDEN = 403
_FILE_NAME = re.compile(r"\d{20}-\d+-\d{6,}\.[0-9a-f]{16}\.json")
_numbers = count()

Parcel = dict[str, Any]
"""Unsent data of one session: `session` (the body that opens it), and `messages`, `event` or both."""
Deliver = Callable[[Api, Parcel], Collection[str]]
"""Sends a parcel; returns the ids of the messages that the server refuses. Raises Unavailable, ServerRefused."""
_Outcome = Literal["sent", "refused", "waits", "held", "missing"]


@dataclass(frozen=True, slots=True)
class SpoolQueue:
    """The parcels that wait for one server and key; `size` in bytes, `oldest` in seconds since 1970."""

    id: str
    server: str
    keyed: bool
    parcels: int
    size: int
    oldest: float


@dataclass(frozen=True, slots=True)
class Replayed:
    """Numbers of parcels: sent, refused permanently and set aside, still waiting, and which of these the key held back.

    Those that are held belong to sessions that the key may not write.
    """

    sent: int = 0
    refused: int = 0
    waiting: int = 0
    held: int = 0


class Spool:
    """The parcels for one server and key, in a folder that may hold those for other servers and keys, too."""

    def __init__(self, folder: Path, url: str, key: str | None) -> None:
        self.folder = folder
        self._server, self._keyed = redact(url), key is not None
        self._id = address(url, key)
        # Parcels spooled without a key are replayed under the key that is set now.
        self._mine = {self._id, address(url, None)}

    def put(self, parcel: Parcel) -> bool:
        """Append a parcel, masked; return False if the spool is full or cannot be written."""
        text = self._text(parcel)
        try:
            # The limit is per server and key: parcels for an abandoned server must not fill it.
            sizes = [size for path, size in self._files() if _queue_id(path) == self._id]
            if sum(sizes) + len(text) > MOST_BYTES or len(sizes) >= _MOST_PARCELS:
                return False
            _write(self.folder, self._id, text)
        except OSError:
            return False
        return True

    def _text(self, parcel: Parcel) -> bytes:
        return json.dumps({"server": self._server, "keyed": self._keyed, **_masked(parcel)}).encode()

    def waiting(self) -> int:
        """Return the number of parcels that wait for this server."""
        return sum(1 for path, _ in self._files() if _queue_id(path) in self._mine)

    def queues(self) -> list[SpoolQueue]:
        """Return one queue for each server and key, the oldest first."""
        by_address: dict[str, list[tuple[Path, int]]] = {}
        for path, size in self._files():
            by_address.setdefault(_queue_id(path), []).append((path, size))
        return [self._queue(queue_id, files) for queue_id, files in by_address.items()]

    def _queue(self, queue_id: str, files: list[tuple[Path, int]]) -> SpoolQueue:
        found = (self._read(path) for path, _ in files)
        parcel = next(filter(None, found), Parcel())
        oldest = int(files[0][0].name.partition("-")[0]) / 1e9
        size = sum(size for _, size in files)
        return SpoolQueue(queue_id, str(parcel.get("server", "?")), bool(parcel.get("keyed")), len(files), size, oldest)

    def is_for_here(self, queue: SpoolQueue) -> bool:
        """Return whether a queue is for this server, with this key or without one."""
        return queue.id in self._mine

    def adopt(self, queue_id: str) -> int:
        """Move another queue's parcels to this server and key; return their number."""
        paths = [path for path, _ in self._files() if _queue_id(path) == queue_id]
        for path in paths:
            with suppress(FileNotFoundError):
                path.rename(path.with_name(_file_name(path.name.partition(".")[0], self._id)))
        return len(paths)

    def drop(self, queue_id: str) -> int:
        """Delete a queue; return the number of its parcels."""
        paths = [path for path, _ in self._files() if _queue_id(path) == queue_id]
        for path in paths:
            path.unlink(missing_ok=True)
        return len(paths)

    def refused(self) -> int:
        """Return the number of parcels that were set aside."""
        return sum(1 for _ in (self.folder / "refused").glob("*.json"))

    def replay(self, api: Api, deliver: Deliver) -> Replayed:
        """Send the parcels, oldest first, until the server is unreachable. Only one process does so at a time.

        Permanently refused parcels are moved to the folder `refused`. Those of a session that the key may not write
        wait for another key. Parcels added meanwhile are sent as well.
        """
        tried: dict[Path, _Outcome] = {}
        # A process that finds the lock taken leaves its parcel to the holder, which looks again after unlocking.
        while "waits" not in tried.values() and self._untried(tried):
            with self._locked() as locked:
                if not locked:
                    break
                self._send_untried(api, deliver, tried)
        outcomes = Counter(tried.values())
        return Replayed(outcomes["sent"], outcomes["refused"], self.waiting(), outcomes["held"])

    def _untried(self, tried: Collection[Path]) -> list[Path]:
        return [path for path, _ in self._files() if _queue_id(path) in self._mine and path not in tried]

    def _send_untried(self, api: Api, deliver: Deliver, tried: dict[Path, _Outcome]) -> None:
        """Send parcels, those added meanwhile included, each once, until one has to wait; record each in `tried`.

        A session that is held keeps its parcels, and holds up no other.
        """
        held: set[tuple[str, str]] = set()
        while paths := self._untried(tried):
            for path in paths:
                parcel = self._read(path)
                is_held = parcel is not None and _session(parcel) in held
                tried[path] = "held" if is_held else self._send(api, deliver, path, parcel) if parcel else "missing"
                if tried[path] == "waits":
                    return
                if parcel and tried[path] == "held":
                    held.add(_session(parcel))

    def _send(self, api: Api, deliver: Deliver, path: Path, parcel: Parcel) -> _Outcome:
        try:
            not_taken = deliver(api, parcel)
        except Unavailable:
            return "waits"
        except ServerRefused as error:
            if error.status == _FORBIDDEN:
                return "held"
            if is_transient(error):
                return "waits"
            self._set_aside(path)
            return "refused"
        self.set_aside(parcel, not_taken)
        path.unlink(missing_ok=True)
        return "sent"

    def set_aside(self, parcel: Parcel, not_taken: Collection[str]) -> None:
        """Keep the refused messages of a parcel, masked, in the folder that `esker doctor` reports."""
        if not not_taken:
            return
        messages = [message for message in parcel["messages"] if message["external_id"] in not_taken]
        with suppress(OSError):
            _write(self.folder / "refused", self._id, self._text({"session": parcel["session"], "messages": messages}))

    def _read(self, path: Path) -> Parcel | None:
        """Return a parcel; None if another process has just sent it, or if it is damaged."""
        try:
            parcel = json.loads(path.read_bytes())
            return parcel if parcel["session"]["external_id"] else None
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self._set_aside(path)
            # Its contents are unknown, so every transcript is sent again; the server ignores what it has.
            shutil.rmtree(self.folder.parent / "sent", ignore_errors=True)
            return None

    def _files(self) -> list[tuple[Path, int]]:
        """Return the parcels, oldest first, with their sizes in bytes."""
        try:
            entries = [
                entry for entry in os.scandir(self.folder) if _FILE_NAME.fullmatch(entry.name) and _is_own(entry)
            ]
            return sorted((Path(entry.path), entry.stat().st_size) for entry in entries)
        except OSError:
            return []

    def _set_aside(self, path: Path) -> None:
        refused = self.folder / "refused"
        with suppress(OSError):
            make_private(refused)
            path.rename(refused / path.name)

    @contextmanager
    def _locked(self) -> Generator[bool]:
        """Yield whether this process holds the lock, so that no other process replays meanwhile."""
        with ExitStack() as stack:
            try:
                lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
                stack.callback(os.close, lock)
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                locked = True
            except OSError:
                locked = False
            yield locked


def address(url: str, key: str | None) -> str:
    """Return a hash that identifies a server and key without revealing the key."""
    return hashlib.sha256(f"{url}\0{key or ''}".encode()).hexdigest()[:16]


def _session(parcel: Parcel) -> tuple[str, str]:
    return str(parcel["session"].get("client")), str(parcel["session"]["external_id"])


def is_transient(error: ServerRefused) -> bool:
    """Return whether the server may accept it later, with another key or when it is less busy."""
    return error.status not in _PERMANENT


def _masked(value: Any, name: str = "") -> Any:
    """Return a parcel without secrets, masked as the server would do it; different ids stay different."""
    match value:
        case str() if name in _ID_FIELDS:
            return redact_name(value)
        case dict() if name != "content":
            members = cast("dict[str, Any]", value)
            return {key: _masked(item, key) for key, item in members.items()}
        case list() if name == "messages":
            return [_masked(item) for item in cast("list[Any]", value)]
        case _:
            return redact_content(value) if name == "content" else redact_json(value)


def _is_own(entry: os.DirEntry[str]) -> bool:
    """Return whether this is a regular file: reading a pipe or a device might never end."""
    return entry.is_file(follow_symlinks=False)


def _file_name(when: str, queue_id: str) -> str:
    return f"{when}.{queue_id}.json"


def _queue_id(path: Path) -> str:
    """Return the id of the queue that a parcel belongs to."""
    return path.name.split(".")[1]


def _write(folder: Path, queue_id: str, text: bytes) -> None:
    """Write an owner-only file atomically; its name sorts after those of older files."""
    make_private(folder.parent, folder)
    final = folder / _file_name(f"{time.time_ns():020d}-{os.getpid()}-{next(_numbers):06d}", queue_id)
    temporary = folder / f".{final.name}.new"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(final)
