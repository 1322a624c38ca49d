"""A proxy in front of Postgres, for tests of what happens between a client and it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias
from urllib.parse import parse_qs, quote, urlsplit

CHUNK = 65_536
"""The most bytes that are read at once."""
Ends: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def in_front_of(database_url: str, connect: Callable[[Ends, Ends], Awaitable[None]]) -> AsyncGenerator[str]:
    """Listen before the socket of `database_url` while the block runs; yield the address for clients.

    `connect` is called for each connection with the client's and the server's ends, which are closed after it.
    """
    parts = urlsplit(database_url)
    [sockets] = parse_qs(parts.query)["host"]
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        there = await asyncio.open_unix_connection(f"{sockets}/.s.PGSQL.5432")
        try:
            await connect((reader, writer), there)
        finally:
            for one in (writer, there[1]):
                one.close()
            tasks.discard(task)

    server = await asyncio.start_server(accept, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    address = f"{parts.scheme}://{quote(parts.username or '')}@127.0.0.1:{port}{parts.path}"
    try:
        yield f"{address}?sslmode=disable&gssencmode=disable"
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on all that comes."""
    with suppress(ConnectionError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
