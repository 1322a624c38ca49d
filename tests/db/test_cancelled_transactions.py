"""A request that is cancelled at any moment leaves no connection on which the next one does not get its own rows."""

import asyncio
import time

import pytest

from esker.server.db.connection import ConnectionPool, LimitedConnection
from esker.server.db.database import Database

ONE = "SELECT 1 AS one"
# Turns of the event loop within which a transaction takes a connection and enters the pipeline.
_TURNS = 8


def keep_loop_busy() -> None:
    """Keep the event loop busy for so long that the driver lets other tasks run at its next step."""
    until = time.monotonic() + 0.006
    while time.monotonic() < until:
        pass


async def after_turns(database: Database, pool_id: str, turns: int) -> None:
    """Cancel a transaction in pipeline mode after so many turns of an event loop that is busy."""

    async def transaction() -> None:
        async with database.moment_pipeline(pool_id) as connection:
            await connection.execute(ONE)

    task = asyncio.create_task(transaction())
    for _ in range(turns):
        keep_loop_busy()
        await asyncio.sleep(0)
    keep_loop_busy()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("turns", range(_TURNS))
async def test_the_next_request_gets_its_rows(database_url: str, pool_id: str, turns: int) -> None:
    async with Database(database_url, connections=1) as database:
        await database.ask(ONE)
        await after_turns(database, pool_id, turns)
        assert await database.ask(ONE) == [{"one": 1}]
        async with database.moment_pipeline(pool_id) as connection:
            cursor = await connection.execute(ONE)
        assert await cursor.fetchall() == [(1,)]


@pytest.mark.parametrize("turns", range(1, 4))
async def test_a_connection_returns_though_its_user_is_cancelled(database_url: str, turns: int) -> None:
    async with ConnectionPool(database_url, connection_class=LimitedConnection, min_size=1, open=False) as pool:
        connection = await pool.getconn()
        waiting = asyncio.create_task(pool.getconn(timeout=2))
        returning = asyncio.create_task(pool.putconn(connection))
        for _ in range(turns):
            await asyncio.sleep(0)
        returning.cancel()
        await asyncio.gather(returning, return_exceptions=True)
        await pool.putconn(await waiting)
        assert pool.get_stats()["pool_available"] == 1
