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
import re
import shutil
import time
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, cast

from esker.server.agents.api import Api, ServerRefused
from esker.server.core.errors import Unavailable
from esker.server.core.redaction import redact, redact_json, redact_name

MOST_BYTES = 64 * 1024 * 1024
_MOST_PARCELS = 20_000
_NAMES = ("external_id", "dedupe_key")
# Only what a message itself is can be wrong for good: another program may answer at the address for a while.
_FOR_GOOD = (413, 422)
_NAME = re.compile(r"\d{20}-\d+-\d{6,}\.[0-9a-f]{16}\.json")
_numbers = count()

Parcel = dict[str, Any]
"""What a session is to be told: `session` (as it is opened), and `messages`, `event` or both."""
Deliver = Callable[[Api, Parcel], Collection[str]]
"""Tells a server what a parcel holds; returns the messages that it does not take. Raises Unavailable, Refused."""


@dataclass(frozen=True, slots=True)
class Pile:
    """What waits for one server and key, which `of` names; `size` in bytes, `oldest` in seconds since 1970."""

    of: str
    server: str
    keyed: bool
    parcels: int
    size: int
    oldest: float


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of a spool: parcels that were sent, that were refused for good and set aside, that still wait."""

    sent: int = 0
    refused: int = 0
    waiting: int = 0


class Spool:
    """The parcels for one server and key, in a folder; those for another server or key are left where they are."""

    def __init__(self, folder: Path, url: str, key: str | None) -> None:
        self.folder = folder
        self._server, self._keyed = redact(url), key is not None
        self._of = address(url, key)
        # What was kept without a key belongs to whichever pool a key opens that was set since.
        self._mine = {self._of, address(url, None)}

    def put(self, parcel: Parcel) -> bool:
        """Keep a parcel, masked, behind those that wait; return False when there is no room or it cannot be written."""
        text = self._text(parcel)
        try:
            # What waits for a server that is no more takes nobody else's room.
            sizes = [size for path, size in self._files() if _of(path) == self._of]
            if sum(sizes) + len(text) > MOST_BYTES or len(sizes) >= _MOST_PARCELS:
                return False
            _write(self.folder, self._of, text)
        except OSError:
            return False
        return True

    def _text(self, parcel: Parcel) -> bytes:
        return json.dumps({"server": self._server, "keyed": self._keyed, **_masked(parcel)}).encode()

    def waiting(self) -> int:
        """Return how many parcels wait for this server."""
        return sum(1 for path, _ in self._files() if _of(path) in self._mine)

    def piles(self) -> list[Pile]:
        """Return what waits, by server and key, the oldest first."""
        by_address: dict[str, list[tuple[Path, int]]] = {}
        for path, size in self._files():
            by_address.setdefault(_of(path), []).append((path, size))
        return [self._pile(of, files) for of, files in by_address.items()]

    def _pile(self, of: str, files: list[tuple[Path, int]]) -> Pile:
        found = (self._read(path) for path, _ in files)
        parcel = next(filter(None, found), Parcel())
        oldest = int(files[0][0].name.partition("-")[0]) / 1e9
        size = sum(size for _, size in files)
        return Pile(of, str(parcel.get("server", "?")), bool(parcel.get("keyed")), len(files), size, oldest)

    def is_for_here(self, pile: Pile) -> bool:
        """Tell whether what waits is for this server, under this key or under none."""
        return pile.of in self._mine

    def adopt(self, of: str) -> int:
        """Have this server under this key get what waits for another; return how many parcels those are."""
        there = [path for path, _ in self._files() if _of(path) == of]
        for path in there:
            with suppress(FileNotFoundError):
                path.rename(path.with_name(_name(path.name.partition(".")[0], self._of)))
        return len(there)

    def drop(self, of: str) -> int:
        """Delete what waits for a server and key; return how many parcels those were."""
        there = [path for path, _ in self._files() if _of(path) == of]
        for path in there:
            path.unlink(missing_ok=True)
        return len(there)

    def refused(self) -> int:
        """Return how many parcels were set aside."""
        return sum(1 for _ in (self.folder / "refused").glob("*.json"))

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
                except ServerRefused as error:
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
        with suppress(OSError):
            _write(self.folder / "refused", self._of, self._text({"session": parcel["session"], "messages": messages}))

    def _until_empty(self) -> Iterator[tuple[Path, Parcel]]:
        """Yield parcels until nothing is there that has not been yielded."""
        seen: set[Path] = set()
        while new := [(path, parcel) for path, parcel in self._parcels() if path not in seen]:
            for path, parcel in new:
                seen.add(path)
                yield path, parcel

    def _parcels(self) -> Iterator[tuple[Path, Parcel]]:
        for path, _ in self._files():
            if _of(path) in self._mine and (parcel := self._read(path)):
                yield path, parcel

    def _read(self, path: Path) -> Parcel | None:
        """Return a parcel; None for one that somebody else has just sent, and for one that is damaged."""
        try:
            parcel = json.loads(path.read_bytes())
            return parcel if parcel["session"]["external_id"] else None
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self._set_aside(path)
            # Nobody knows what was in it, so every transcript is sent again; the server knows what it has.
            shutil.rmtree(self.folder.parent / "sent", ignore_errors=True)
            return None

    def _files(self) -> list[tuple[Path, int]]:
        """Return the parcels, oldest first, with their sizes in bytes."""
        try:
            there = [entry for entry in os.scandir(self.folder) if _NAME.fullmatch(entry.name) and _is_own(entry)]
            return sorted((Path(entry.path), entry.stat().st_size) for entry in there)
        except OSError:
            return []

    def _set_aside(self, path: Path) -> None:
        aside = self.folder / "refused"
        with suppress(OSError):
            aside.mkdir(exist_ok=True, mode=0o700)
            path.rename(aside / path.name)

    @contextmanager
    def _alone(self) -> Generator[bool]:
        """Yield whether there is something to send that nobody else is sending; others are kept from it meanwhile."""
        with ExitStack() as stack:
            try:
                lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
                stack.callback(os.close, lock)
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                alone = True
            except OSError:
                alone = False
            yield alone


def address(url: str, key: str | None) -> str:
    """Return what tells one server and pool from another without telling the key."""
    return hashlib.sha256(f"{url}\0{key or ''}".encode()).hexdigest()[:16]


def is_passing(error: ServerRefused) -> bool:
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


def _is_own(entry: os.DirEntry[str]) -> bool:
    """Tell whether this is a file that a spool can have written: a pipe or a device would be read for ever."""
    return entry.is_file(follow_symlinks=False)


def _name(when: str, of: str) -> str:
    return f"{when}.{of}.json"


def _of(path: Path) -> str:
    """Return which server and key a parcel waits for."""
    return path.name.split(".")[1]


def _write(folder: Path, of: str, text: bytes) -> None:
    """Write a file that is there whole or not at all, for its owner alone; its name sorts behind the older ones."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    final = folder / _name(f"{time.time_ns():020d}-{os.getpid()}-{next(_numbers):06d}", of)
    temporary = folder / f".{final.name}.new"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(final)
