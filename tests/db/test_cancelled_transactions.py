"""A request that is cancelled at any moment leaves no connection on which the next one does not get its own rows."""

import asyncio
import time
from contextlib import AsyncExitStack

import pytest
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from esker.server.app import make_parts
from esker.server.background import beside, run_jobs
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.db.connection import ConnectionPool, LimitedConnection
from esker.server.db.database import Database
from tests.support.waiting import PATIENCE, eventually

ONE = "SELECT 1 AS one"
# Turns of the event loop within which a transaction takes a connection and enters the pipeline.
_TURNS = 8


async def waits(pool: ConnectionPool) -> bool:
    """Return whether a task waits for a connection of a pool."""
    return pool.get_stats().get("requests_waiting") == 1


async def available(pool: ConnectionPool) -> bool:
    """Return whether the connection of a pool is there for its next user."""
    return pool.get_stats()["pool_available"] == 1


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


@pytest.mark.parametrize("turns", range(8))
async def test_a_task_that_waits_for_a_connection_ends_when_it_is_cancelled(database_url: str, turns: int) -> None:
    async with ConnectionPool(
        database_url, connection_class=LimitedConnection, min_size=1, open=False, timeout=PATIENCE
    ) as pool:
        connection = await pool.getconn()
        waiting = asyncio.create_task(pool.getconn())
        await eventually(lambda: waits(pool))
        returning = asyncio.create_task(pool.putconn(connection))
        for _ in range(turns):
            await asyncio.sleep(0)
        was_cancelled = waiting.cancel()
        await asyncio.gather(waiting, returning, return_exceptions=True)
        assert waiting.cancelled() == was_cancelled
        if not was_cancelled:
            await pool.putconn(waiting.result())
        await eventually(lambda: available(pool))


async def test_a_cancellation_that_comes_with_a_timeout_counts(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def times_out(*_: object) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise PoolTimeout from None

    monkeypatch.setattr(AsyncConnectionPool, "getconn", times_out)
    pool = ConnectionPool(database_url, connection_class=LimitedConnection, open=False)
    waiting = asyncio.create_task(pool.getconn())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert waiting.cancelled()


@pytest.mark.parametrize("turns", range(3))
async def test_a_job_runner_that_waits_for_a_connection_stops(database_url: str, pool_id: str, turns: int) -> None:
    settings = Settings.from_environment({"ESKER_EMBEDDER": "none"})
    async with asyncio.timeout(PATIENCE), Database(database_url, connections=1) as database, AsyncExitStack() as stack:
        parts = make_parts(settings, database, system_clock)
        async with database.tenant(pool_id):
            await stack.enter_async_context(beside("jobs", lambda: run_jobs(parts)))
            await eventually(lambda: waits(database._pool))
        for _ in range(turns):
            await asyncio.sleep(0)
