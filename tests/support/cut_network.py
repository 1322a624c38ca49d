"""A network between a process and Postgres that breaks at a statement: before it, or after it and before its answer.

The statements are read from the wire, so the process under test has no part in it. Both places are tried since they
differ: before it the statement has not run, after it has, and in both cases nobody hears of it.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal

from tests.support.postgres_proxy import Ends, in_front_of

Place = Literal["before", "after"]
_EXECUTE, _QUERY, _PARSE = b"E", b"Q", b"P"
_FLUSH = b"H\x00\x00\x00\x04"
_COMPLETE = b"CIsE"
"""Types of the messages that end a statement: complete, empty, suspended, error."""


@dataclass(slots=True)
class CutNetwork:
    """A network at `url`. It counts the statements that pass, over all connections, since `arm`.

    `passed` are their texts, as far as they are on the wire. `on_cut` is called when it breaks, such as to kill the
    process; then all connections are gone, and none is accepted until `heal`.
    """

    url: str = ""
    passed: list[str] = field(default_factory=list[str])
    on_cut: Callable[[], object] = lambda: None
    was_cut: bool = False
    _at: int | None = None
    _place: Place = "before"
    _open: set[Ends] = field(default_factory=set[Ends])

    def arm(self, at: int, place: Place) -> None:
        """Break at the statement number `at` from now, counted from 1."""
        self.passed.clear()
        self._at, self._place, self.was_cut = at, place, False

    def heal(self) -> None:
        """Break no more, and accept connections again."""
        self._at, self.was_cut = None, False

    def name(self) -> str:
        """Return the place in words."""
        return f"{self._place} statement {len(self.passed)}: {self.passed[-1] if self.passed else 'none'}"

    async def connect(self, client: Ends, server: Ends) -> None:
        """Pass on what comes, until the network breaks."""
        if self.was_cut:
            client[1].transport.abort()
            return
        self._open |= {client, server}
        answers = _Answers(self, client, server)
        copying = asyncio.create_task(answers.copy())
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await _Requests(self, client, server, answers).copy()
        finally:
            copying.cancel()
            self._open -= {client, server}

    def is_here(self, text: str) -> bool:
        """Count a statement; return whether the network breaks at it."""
        if self._at is None:
            return False
        self.passed.append(text)
        return len(self.passed) == self._at

    def cut(self) -> None:
        """Break now."""
        self.was_cut, self._at = True, None
        self.on_cut()
        for ends in self._open:
            ends[1].transport.abort()

    @property
    def place(self) -> Place:
        """Whether it breaks before the statement or after."""
        return self._place


@dataclass(slots=True)
class _Requests:
    """The messages of the client."""

    network: CutNetwork
    client: Ends
    server: Ends
    answers: "_Answers"
    parsed: str = ""

    async def copy(self) -> None:
        reader, writer = self.client[0], self.server[1]
        length = int.from_bytes(head := await reader.readexactly(4))
        writer.write(head + await reader.readexactly(length - 4))
        while True:
            kind = await reader.readexactly(1)
            size = await reader.readexactly(4)
            body = await reader.readexactly(int.from_bytes(size) - 4)
            if kind == _PARSE:
                self.parsed = body.split(b"\0")[1].decode()
            if kind in (_EXECUTE, _QUERY):
                text = body.rstrip(b"\0").decode() if kind == _QUERY else self.parsed
                if self.network.is_here(" ".join(text.split())[:120]):
                    await self._break(kind + size + body)
                    return
                self.answers.awaited += 1
            writer.write(kind + size + body)
            await writer.drain()

    async def _break(self, message: bytes) -> None:
        if self.network.place == "before":
            self.network.cut()
            return
        self.answers.last = self.answers.awaited + 1
        self.server[1].write(message if message[:1] == _QUERY else message + _FLUSH)
        await self.server[1].drain()
        await self.answers.ended.wait()


@dataclass(slots=True)
class _Answers:
    """The messages of Postgres; the answer to statement number `last` of this connection is lost."""

    network: CutNetwork
    client: Ends
    server: Ends
    awaited: int = 0
    last: int | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    _complete: int = 0

    async def copy(self) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while True:
                    kind = await self.server[0].readexactly(1)
                    size = await self.server[0].readexactly(4)
                    body = await self.server[0].readexactly(int.from_bytes(size) - 4)
                    self._complete += kind in _COMPLETE
                    if self.last is not None and (self._complete >= self.last or kind == b"Z"):
                        return
                    if self.last is None or self._complete < self.last:
                        self.client[1].write(kind + size + body)
                        await self.client[1].drain()
        finally:
            if self.last is not None and not self.network.was_cut:
                self.network.cut()
            self.ended.set()


@asynccontextmanager
async def cut_network(database_url: str) -> AsyncGenerator[CutNetwork]:
    """Put such a network in front of `database_url` while the block runs."""
    network = CutNetwork()
    async with in_front_of(database_url, network.connect) as network.url:
        yield network
