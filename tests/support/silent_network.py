"""A network between a client and Postgres whose open connections can go silent, without any end hearing of it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qs, quote, urlsplit


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
    """Listen in front of the socket of `database_url` while the block runs."""
    parts = urlsplit(database_url)
    [sockets] = parse_qs(parts.query)["host"]
    network = SilentNetwork()
    tasks: set[asyncio.Task[None]] = set()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        silent = network.new_connection()
        there, back = await asyncio.open_unix_connection(f"{sockets}/.s.PGSQL.5432")
        answers = asyncio.create_task(_copy(there, writer, silent))
        try:
            await _copy(reader, back, silent)
        finally:
            answers.cancel()
            for one in (writer, back):
                one.close()
            tasks.discard(task)

    server = await asyncio.start_server(connect, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    address = f"{parts.scheme}://{quote(parts.username or '')}@127.0.0.1:{port}{parts.path}"
    network.url = f"{address}?sslmode=disable&gssencmode=disable"
    try:
        yield network
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, silent: asyncio.Event) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            if not silent.is_set():
                writer.write(data)
                await writer.drain()
