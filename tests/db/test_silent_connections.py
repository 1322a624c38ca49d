"""Connections that go silent: nothing waits for them for ever, and the next request gets another connection."""

import asyncio
import select
import time
from collections.abc import AsyncGenerator
from contextlib import suppress

import psycopg
import pytest

from esker.server.app import make_parts
from esker.server.core.config.settings import Settings
from esker.server.core.errors import Unavailable
from esker.server.db import database as databases
from esker.server.db.connection import ANSWER_SECONDS
from esker.server.db.database import Database
from esker.server.usecases.report_status import operations
from tests.support.silent_network import SilentNetwork, silent_network
from tests.support.waiting import PATIENCE

ONE = "SELECT 1 AS one"


@pytest.fixture
async def network(database_url: str) -> AsyncGenerator[SilentNetwork]:
    """A network in front of Postgres."""
    async with silent_network(database_url) as made:
        yield made


async def ask_when_silent(database: Database, pool_id: str, network: SilentNetwork) -> None:
    """Run a statement on a connection that goes silent before it."""
    async with database.tenant(pool_id) as connection:
        network.go_silent()
        await connection.execute(ONE)


async def test_a_statement_on_a_silent_connection_ends_with_an_error(network: SilentNetwork, pool_id: str) -> None:
    async with Database(network.url, connections=1, answer_seconds=0.3) as database:
        with pytest.raises(Unavailable, match="The database cannot answer"):
            await ask_when_silent(database, pool_id, network)
        assert await database.ask(ONE) == [{"one": 1}], "the next request gets another connection"


async def test_idle_connections_that_went_silent_are_not_handed_out(
    network: SilentNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "_IDLE_SECONDS", 0.0)
    async with Database(network.url, connections=2) as database:
        assert await database.ask(ONE) == [{"one": 1}]
        network.go_silent()
        assert await database.ask(ONE) == [{"one": 1}]


async def test_a_probe_waits_no_longer_than_it_says_for_a_connection_that_went_silent(network: SilentNetwork) -> None:
    async with Database(network.url, connections=1) as database, asyncio.timeout(ANSWER_SECONDS / 2):
        await database.ask(ONE)
        network.go_silent()
        with pytest.raises(Unavailable, match="The database cannot answer"):
            await database.ask(ONE, wait_seconds=0.3)
        assert await database.ask(ONE) == [{"one": 1}]


async def test_figures_of_a_server_come_soon_without_the_database(
    network: SilentNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "_WAIT_SECONDS", PATIENCE)
    async with Database(network.url, connections=1, wait_seconds=PATIENCE) as database, asyncio.timeout(60):
        await database.ask(ONE)
        network.swallows = True
        network.break_connections()
        for _ in range(2):  # the first one may notice that its connection is broken
            with suppress(Unavailable):
                await database.ask(ONE, wait_seconds=0.1)
        with pytest.raises(Unavailable):
            await operations(make_parts(Settings.from_environment({"ESKER_EMBEDDER": "none"}), database))


async def test_a_connection_that_answers_is_kept(network: SilentNetwork) -> None:
    async with Database(network.url, connections=1) as database:
        await database.ask(ONE)
        opened = network.opened
        for _ in range(3):
            await database.ask(ONE)
        assert network.opened == opened


async def test_a_slow_statement_may_be_waited_for(network: SilentNetwork, pool_id: str) -> None:
    async with Database(network.url, connections=1, answer_seconds=0.3) as database, database.tenant(pool_id) as slow:
        with slow.waiting(60.0):
            slept = await slow.execute("SELECT pg_sleep(0.6) IS NOT NULL")
        assert await slept.fetchone() == (True,)


async def test_a_process_that_was_busy_hangs_up_on_no_answer(database_url: str, pool_id: str) -> None:
    async with Database(database_url, connections=1) as database, database.tenant(pool_id) as connection:
        with connection.waiting(0.5):
            asked = asyncio.create_task(connection.execute("SELECT pg_sleep(0.05), 1 AS one"))
            await asyncio.sleep(0.01)
            # As if other work had kept the event loop until the answer was there and the wait was over.
            select.select([connection.pgconn.socket], [], [])
            time.sleep(0.5)  # noqa: ASYNC251
            await asked
        assert await (await connection.execute(ONE)).fetchone() == (1,), "the connection is still open"


async def test_connections_that_postgres_has_ended_are_not_handed_out(database_url: str, owner_url: str) -> None:
    async with Database(database_url, connections=1) as database:
        [[mine]] = [row.values() for row in await database.ask("SELECT pg_backend_pid() AS pid")]
        with psycopg.connect(owner_url, autocommit=True) as owner:
            # Its last words have arrived when it is gone.
            owner.execute("SELECT pg_terminate_backend(%s, 60000)", [mine])
        assert await database.ask(ONE) == [{"one": 1}]


async def test_a_cursor_whose_connection_was_cut_is_closed(database_url: str, owner_url: str, pool_id: str) -> None:
    async with Database(database_url, connections=1) as database:
        with suppress(Unavailable):
            async with database.tenant(pool_id) as connection:
                cursor = connection.cursor("numbers")
                await cursor.execute("SELECT generate_series(1, 100)")
                with psycopg.connect(owner_url, autocommit=True) as owner:
                    owner.execute("SELECT pg_terminate_backend(%s, 60000)", [connection.info.backend_pid])
                with pytest.raises(psycopg.OperationalError):
                    await cursor.close()
                assert cursor.closed
