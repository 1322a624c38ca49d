"""What could not be sent, kept until the server is there again: owner-only files with masked contents.

A parcel is deleted when the server has taken it. Sent twice it changes nothing, since messages and events have names;
so whoever is killed in between loses nothing and doubles nothing. The spool is bounded: when it is full, nothing more
is put in, and what is not in it stays unread in its transcript and is sent from there. What no transcript holds goes
through the spool in any case.
"""

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, cast

from server.clients.api import Api, Refused
from server.core.errors import Unavailable
from server.core.redaction import redact_json, redact_name

MOST_BYTES = 64 * 1024 * 1024
_MOST_PARCELS = 20_000
_NAMES = ("external_id", "dedupe_key")
# Only what a message itself is can be wrong for good: another program may answer at the address for a while.
_FOR_GOOD = (413, 422)
_numbers = count()

Parcel = dict[str, Any]
"""What a session is to be told: `session` (as it is opened), and `messages`, `event` or both."""
Deliver = Callable[[Api, Parcel], Collection[str]]
"""Tells a server what a parcel holds; returns the messages that it does not take. Raises Unavailable, Refused."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of a spool: parcels that were sent, that were refused for good and set aside, that still wait."""

    sent: int = 0
    refused: int = 0
    waiting: int = 0


class Spool:
    """The parcels for one server and key, in a folder; those for another server or key are left where they are."""

    def __init__(self, folder: Path, url: str, key: str | None) -> None:
        self._folder = folder
        self._of = address(url, key)
        # What was kept without a key belongs to whichever pool a key opens that was set since.
        self._mine = {self._of, address(url, None)}

    def put(self, parcel: Parcel) -> bool:
        """Keep a parcel, masked, behind those that wait; return False when there is no room or it cannot be written."""
        text = json.dumps({"of": self._of, **_masked(parcel)}).encode()
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            sizes = [size for _, size in self._files()]
            if sum(sizes) + len(text) > MOST_BYTES or len(sizes) >= _MOST_PARCELS:
                return False
            name = f"{time.time_ns():020d}-{os.getpid()}-{next(_numbers):06d}"
            _write(self._folder / f".{name}", self._folder / f"{name}.json", text)
        except OSError:
            return False
        return True

    def waiting(self) -> int:
        """Return how many parcels wait for this server."""
        return sum(1 for _ in self._parcels())

    def elsewhere(self) -> int:
        """Return how many parcels wait for another server, or under another key."""
        return len(self._files()) - self.waiting()

    def refused(self) -> int:
        """Return how many parcels were set aside."""
        return sum(1 for _ in (self._folder / "refused").glob("*.json"))

    def replay(self, api: Api, deliver: Deliver) -> Replayed:
        """Send what waits, oldest first, until the server is away again. Of two at the same time one does it.

        What the server refuses for good goes into the folder `refused`. What is put in meanwhile is sent as well.
        """
        sent = refused = 0
        with self._alone() as alone:
            for path, parcel in self._until_empty() if alone else ():
                try:
                    not_taken = deliver(api, parcel)
                except Unavailable:
                    break
                except Refused as error:
                    if is_passing(error):
                        break
                    self._set_aside(path)
                    refused += 1
                else:
                    self.set_aside(parcel, not_taken)
                    path.unlink(missing_ok=True)
                    sent += 1
        return Replayed(sent, refused, self.waiting())

    def set_aside(self, parcel: Parcel, not_taken: Collection[str]) -> None:
        """Keep those messages of a parcel that a server does not take, masked, where `esker doctor` tells of them."""
        if not not_taken:
            return
        messages = [message for message in parcel["messages"] if message["external_id"] in not_taken]
        text = json.dumps({"of": self._of, **_masked({"session": parcel["session"], "messages": messages})}).encode()
        try:
            aside = self._folder / "refused"
            aside.mkdir(parents=True, exist_ok=True, mode=0o700)
            name = f"{time.time_ns():020d}-{os.getpid()}-{next(_numbers):06d}"
            _write(aside / f".{name}", aside / f"{name}.json", text)
        except OSError:
            return

    def _until_empty(self) -> Iterator[tuple[Path, Parcel]]:
        """Yield parcels until nothing is there that has not been yielded."""
        seen: set[Path] = set()
        while new := [(path, parcel) for path, parcel in self._parcels() if path not in seen]:
            for path, parcel in new:
                seen.add(path)
                yield path, parcel

    def _parcels(self) -> Iterator[tuple[Path, Parcel]]:
        for path, _ in self._files():
            try:
                parcel = json.loads(path.read_bytes())
                mine = parcel["session"].keys() and parcel["of"] in self._mine
            except FileNotFoundError:  # somebody else has just sent it
                continue
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                self._set_aside(path)
                # Nobody knows what was in it, so every transcript is sent again; the server knows what it has.
                shutil.rmtree(self._folder.parent / "sent", ignore_errors=True)
                continue
            if mine:
                yield path, parcel

    def _files(self) -> list[tuple[Path, int]]:
        """Return the parcels, oldest first, with their sizes in bytes."""
        try:
            there = [entry for entry in os.scandir(self._folder) if entry.name.endswith(".json")]
            return sorted((Path(entry.path), entry.stat().st_size) for entry in there)
        except OSError:
            return []

    def _set_aside(self, path: Path) -> None:
        aside = self._folder / "refused"
        try:
            aside.mkdir(exist_ok=True, mode=0o700)
            path.rename(aside / path.name)
        except OSError:
            return

    @contextmanager
    def _alone(self) -> Generator[bool]:
        """Yield whether there is something to send that nobody else is sending; others are kept from it meanwhile."""
        with ExitStack() as stack:
            try:
                lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
                stack.callback(os.close, lock)
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                alone = True
            except OSError:
                alone = False
            yield alone


def address(url: str, key: str | None) -> str:
    """Return what tells one server and pool from another without telling the key."""
    return hashlib.sha256(f"{url}\0{key or ''}".encode()).hexdigest()[:16]


def is_passing(error: Refused) -> bool:
    """Tell whether a server that refused something may take it later, from somebody else or when it has time."""
    return error.status not in _FOR_GOOD


def _masked(value: Any, name: str = "") -> Any:
    """Return a parcel without secrets; names stay different from each other, as the server would mask them."""
    match value:
        case str() if name in _NAMES:
            return redact_name(value)
        case dict() if name != "content":
            members = cast("dict[str, Any]", value)
            return {key: _masked(item, key) for key, item in members.items()}
        case list() if name == "messages":
            return [_masked(item) for item in cast("list[Any]", value)]
        case _:
            return redact_json(value)


def _write(temporary: Path, final: Path, text: bytes) -> None:
    """Write a file that is there whole or not at all, for its owner alone."""
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(final)
