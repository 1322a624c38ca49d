"""Behind a pooler in transaction mode: connections that other clients use as well keep nothing of a transaction."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import LiteralString

import httpx2
import psycopg
import pytest

from esker.embedding_worker.worker import run_worker
from esker.server.app import make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from esker.server.usecases.parts import Parts
from tests.support.api import contents, opened, recalled, said, settled, until
from tests.support.embedding_server import EmbeddingServer, asked_at, embedding_server
from tests.support.pgbouncer import SERVERS, pgbouncer
from tests.support.serving import serving
from tests.support.waiting import PATIENCE

# All that a transaction of Esker changes for itself.
_STATE: LiteralString = """
    SELECT current_user, current_setting('esker.pool_id', true), current_setting('esker.project', true),
           current_setting('statement_timeout'), current_setting('hnsw.ef_search', true)
"""

_INSERT: LiteralString = """
    INSERT INTO audit (pool_id, at, actor, action, target) VALUES (current_pool(), now(), 'test', 'write', %s)
"""


@pytest.fixture
def pooled_url(database_url: str) -> Generator[str]:
    """The test's database through pgbouncer."""
    with pgbouncer(database_url) as url:
        yield url


@pytest.fixture
async def pooled(pooled_url: str, database_url: str) -> AsyncGenerator[Database]:
    """The same, open, with more connections than pgbouncer has."""
    async with Database(pooled_url, direct_url=database_url, connections=3 * SERVERS) as database:
        yield database


async def test_pools_do_not_meet_on_shared_connections(pooled: Database) -> None:
    rows = await pooled.ask("INSERT INTO pools (name) VALUES ('a'), ('b') RETURNING id::text")
    pools = [str(row["id"]) for row in rows]

    async def write_and_read(number: int) -> None:
        pool = pools[number % 2]
        async with pooled.tenant(pool) as connection:
            await connection.execute(_INSERT, [f"k{number}"])
            seen = await connection.execute("SELECT DISTINCT pool_id::text FROM audit")
            assert await seen.fetchall() == [(pool,)]

    await asyncio.gather(*(write_and_read(number) for number in range(12)))


async def test_a_transaction_leaves_nothing_behind(pooled: Database, pooled_url: str) -> None:
    with psycopg.connect(pooled_url, autocommit=True, prepare_threshold=None) as other:
        before = other.execute(_STATE).fetchone()
        [pool] = await pooled.ask("SELECT id::text FROM pools")
        async with pooled.of_project("p").tenant(pool["id"]) as connection:
            inside = await (await connection.execute(_STATE)).fetchone()
        async with pooled.moment_pipeline(pool["id"]) as connection:
            await connection.execute("SELECT 1")
        assert inside == ("esker_project", pool["id"], "p", "30s", "200")
        after = [other.execute(_STATE).fetchone() for _ in range(2 * SERVERS)]
        assert before
        # A setting that a transaction has made is empty after it, and not unset.
        left = {tuple(part or None for part in state) for state in after if state}
        assert left == {("esker_app", None, None, before[3], None)}


async def test_slow_exports_hold_no_connection_of_the_pooler(pooled: Database) -> None:
    [pool] = await pooled.ask("SELECT id::text FROM pools")
    async with AsyncExitStack() as stack:
        for _ in range(SERVERS):
            await stack.enter_async_context(pooled.moment_apart(pool["id"]))
        assert await pooled.ask("SELECT 1 AS one") == [{"one": 1}]


@asynccontextmanager
async def two_of_each(
    url: str, direct_url: str, endpoint: EmbeddingServer
) -> AsyncGenerator[tuple[httpx2.AsyncClient, httpx2.AsyncClient]]:
    """Run two servers and two workers on one database; yield a client of each server."""
    stop = asyncio.Event()
    settings = Settings.from_environment({"ESKER_EMBEDDER": f"openai:{endpoint.url}#scripted"})
    async with AsyncExitStack() as stack:
        clients: list[httpx2.AsyncClient] = []
        for _ in range(2):
            database = Database(url, direct_url=direct_url, wait_seconds=PATIENCE)
            parts = make_parts(settings, database, system_clock)
            served = await stack.enter_async_context(serving(parts))
            client = httpx2.AsyncClient(base_url=served, timeout=PATIENCE)
            clients.append(await stack.enter_async_context(client))
        workers: list[asyncio.Task[None]] = []
        for _ in range(2):
            database = Database(url, direct_url=direct_url, connections=2, wait_seconds=PATIENCE)
            parts = Parts(database, system_clock, settings)
            embedder = await stack.enter_async_context(asked_at(endpoint))
            workers.append(asyncio.create_task(run_worker(parts, embedder, stop)))
        try:
            yield clients[0], clients[1]
        finally:
            stop.set()
            await asyncio.gather(*workers)


async def test_two_servers_and_two_workers_share_a_database_behind_it(pooled_url: str, database_url: str) -> None:
    async with embedding_server() as endpoint, two_of_each(pooled_url, database_url, endpoint) as clients:
        sessions = [await opened(clients[number % 2], f"s{number}") for number in range(4)]
        said_each = [f"The river of valley {number} rises in spring." for number in range(12)]

        async def say(number: int) -> None:
            client = clients[number % 2]
            await said(client, sessions[number % 4], said_each[number])
            await said(clients[1 - number % 2], sessions[number % 4], said_each[number])

        await asyncio.gather(*(say(number) for number in range(12)))
        for client, session in zip(clients * 2, sessions, strict=True):
            asked = await client.post(f"/v1/sessions/{session}/observe")
            assert asked.status_code < 300, asked.text
        for client in clients:
            for session in sessions:
                kept = await until(client, f"/v1/sessions/{session}", lambda seen: seen["unobserved_tokens"] == 0)
                assert kept["messages"] == 3
            await settled(client)
            [found] = contents(await recalled(client, "river of valley 7", limit=1))
            assert said_each[7] in found
    embedded = [text for texts in endpoint.asked for text in texts if said_each[7] in text]
    assert embedded, "the passage has a vector"
    assert len(embedded) == len(set(embedded)), "no worker embeds what the other one has embedded"
