"""A network between a client and Postgres whose open connections can go silent, without any end hearing of it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from tests.support.postgres_proxy import CHUNK, Ends, in_front_of


class SilentNetwork:
    """A network at `url`; connections that are open when it goes silent pass nothing on any more, new ones do."""

    def __init__(self) -> None:
        self.url = ""
        self.opened = 0
        self._open: set[asyncio.Event] = set()

    def go_silent(self) -> None:
        """Swallow from now on what either end of an open connection sends."""
        for silent in self._open:
            silent.set()
        self._open.clear()

    def new_connection(self) -> asyncio.Event:
        """Return the event that is set when the connection goes silent."""
        silent = asyncio.Event()
        self.opened += 1
        self._open.add(silent)
        return silent


@asynccontextmanager
async def silent_network(database_url: str) -> AsyncGenerator[SilentNetwork]:
    """Put such a network in front of `database_url` while the block runs."""
    network = SilentNetwork()

    async def connect(client: Ends, server: Ends) -> None:
        silent = network.new_connection()
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
