"""A proxy in front of Postgres that counts how often a client waits for an answer."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from tests.support.postgres_proxy import Ends, copy, in_front_of

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
    """Count the round trips to `database_url` while the block runs."""
    trips = RoundTrips("")

    async def connect(client: Ends, server: Ends) -> None:
        back = asyncio.create_task(copy(server[0], client[1]))
        try:
            await _copy_and_count(client[0], server[1], trips)
        finally:
            back.cancel()

    async with in_front_of(database_url, connect) as trips.url:
        yield trips


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
