"""A network between a client and Postgres that fails: connections go silent without any end hearing of it, or break."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress

from tests.support.postgres_proxy import CHUNK, Ends, in_front_of


class SilentNetwork:
    """A network at `url`; connections that are open when it goes silent pass nothing on any more, new ones do.

    `swallows`: new connections are silent as well. `refuses`: they are closed at once.
    """

    def __init__(self) -> None:
        self.url = ""
        self.opened = 0
        self.swallows = False
        self.refuses = False
        self._open: set[asyncio.Event] = set()
        self._clients: set[asyncio.StreamWriter] = set()

    def go_silent(self) -> None:
        """Swallow from now on what either end of an open connection sends."""
        for silent in self._open:
            silent.set()
        self._open.clear()

    def break_connections(self) -> None:
        """Reset all open connections."""
        for client in self._clients:
            client.transport.abort()

    @contextmanager
    def new_connection(self, client: asyncio.StreamWriter) -> Generator[asyncio.Event]:
        """Yield the event that is set when the connection goes silent."""
        silent = asyncio.Event()
        self.opened += 1
        self._open.add(silent)
        self._clients.add(client)
        if self.swallows:
            silent.set()
        if self.refuses:
            client.transport.abort()
        try:
            yield silent
        finally:
            self._clients.discard(client)


@asynccontextmanager
async def silent_network(database_url: str) -> AsyncGenerator[SilentNetwork]:
    """Put such a network in front of `database_url` while the block runs."""
    network = SilentNetwork()

    async def connect(client: Ends, server: Ends) -> None:
        with network.new_connection(client[1]) as silent:
            answers = asyncio.create_task(_copy(server[0], client[1], silent))
            try:
                await _copy(client[0], server[1], silent)
            finally:
                answers.cancel()

    async with in_front_of(database_url, connect) as network.url:
        yield network


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, silent: asyncio.Event) -> None:
    """Pass on what comes until the connection is silent, and swallow the rest."""
    with suppress(ConnectionError):
        while data := await reader.read(CHUNK):
            if not silent.is_set():
                writer.write(data)
                await writer.drain()
