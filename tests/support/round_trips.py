"""A proxy in front of Postgres that counts how often a client waits for an answer."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qs, quote, urlsplit

# The messages after which Postgres answers, so that the client waits: a simple query, and the end (Sync) or a flush of
# a pipeline. A flush directly after the end has nothing to wait for.
_QUERY, _SYNC, _FLUSH = b"QSH"


class RoundTrips:
    """The round trips of all connections to `url`, counted since the last reset."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.count = 0

    def reset(self) -> None:
        """Count from 0 again."""
        self.count = 0


@asynccontextmanager
async def counted_round_trips(database_url: str) -> AsyncGenerator[RoundTrips]:
    """Listen beside the socket of `database_url` while the block runs."""
    parts = urlsplit(database_url)
    [sockets] = parse_qs(parts.query)["host"]
    trips = RoundTrips("")
    tasks: set[asyncio.Task[None]] = set()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        server_reader, server_writer = await asyncio.open_unix_connection(f"{sockets}/.s.PGSQL.5432")
        back = asyncio.create_task(_copy(server_reader, writer))
        try:
            await _copy_and_count(reader, server_writer, trips)
        finally:
            back.cancel()
            for one in (writer, server_writer):
                one.close()
            tasks.discard(task)

    server = await asyncio.start_server(pass_on, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    address = f"{parts.scheme}://{quote(parts.username or '')}@127.0.0.1:{port}{parts.path}"
    trips.url = f"{address}?sslmode=disable&gssencmode=disable"
    try:
        yield trips
    finally:
        server.close()
        # The clients have closed their connections.
        await asyncio.gather(*tasks)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()


async def _copy_and_count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, trips: RoundTrips) -> None:
    """Pass on the messages of a client, which have a type, except the first."""
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        length = await reader.readexactly(4)
        writer.write(length + await reader.readexactly(int.from_bytes(length, "big") - 4))
        before = 0
        while True:
            head = await reader.readexactly(5)
            trips.count += head[0] in (_QUERY, _SYNC) or (head[0] == _FLUSH and before != _SYNC)
            before = head[0]
            writer.write(head + await reader.readexactly(int.from_bytes(head[1:], "big") - 4))
            await writer.drain()
