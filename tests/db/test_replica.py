"""Recall from a real streaming replica: everyone finds what was written before, however far the replica is behind."""

import os
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import psycopg
import pytest

from esker.server.app import make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from esker.server.db.embedded import OWNER, Cluster, embedded
from esker.server.db.pipeline import fetch
from esker.server.db.programs import hand_over, postgres_uid, run
from esker.server.db.replica import log_position
from tests.support.api import contents, recalled
from tests.support.made import made_at, shared_folder
from tests.support.serving import serving
from tests.support.waiting import PATIENCE, eventually


@pytest.fixture(scope="module")
def primary() -> Generator[Cluster]:
    """A Postgres of its own that commits as in production, since what is not flushed reaches no replica."""
    with (
        tempfile.TemporaryDirectory(prefix="esker-primary-", dir=shared_folder()) as directory,
        embedded(Path(made_at(Path(directory, "d"))), "serve") as running,
    ):
        yield running


@contextmanager
def follower_of(primary: Cluster) -> Generator[Cluster]:
    """Run a streaming replica during the block."""
    with tempfile.TemporaryDirectory(prefix="esker-follower-", dir=shared_folder()) as name:
        folder = Path(name)
        hand_over(folder)
        data = folder / "d"
        # Esker writes this file, under root as root.
        for file in primary.directory.glob("log*"):
            os.chown(file, postgres_uid(), -1)
        run("pg_basebackup", "-d", primary.url(OWNER, "postgres"), "-D", data, "-R", "-c", "fast")
        following = Cluster(data, data, primary.settings)
        following.ensure_running()
        try:
            yield following
        finally:
            following.stop()


@pytest.fixture(scope="module")
def follower(primary: Cluster) -> Generator[Cluster]:
    """A streaming replica."""
    with follower_of(primary) as following:
        yield following


@pytest.fixture
async def database(primary: Cluster, follower: Cluster) -> AsyncGenerator[Database]:
    """The primary with its replica, which replays."""
    with psycopg.connect(follower.url(OWNER), autocommit=True) as connection:
        connection.execute("SELECT pg_wal_replay_resume()")
    async with Database(primary.url(), replica_url=follower.url()) as opened:
        yield opened


@pytest.fixture
async def client(primary: Cluster, follower: Cluster, database: Database) -> AsyncGenerator[httpx2.AsyncClient]:
    """A client of a server with the replica."""
    settings = Settings.from_environment({"ESKER_EMBEDDER": "none"})
    parts = make_parts(settings, Database(primary.url(), replica_url=follower.url()), system_clock)
    async with serving(parts) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as connected:
        yield connected


async def remembered(client: httpx2.AsyncClient, content: str) -> None:
    """Write a note."""
    answer = await client.post("/v1/memories", json={"content": content})
    assert answer.is_success, answer.text


async def reads_from_replica(database: Database, pool_id: str) -> bool:
    """Return whether a transaction that must show all that was committed until now is one of the replica."""
    async with database.moment_pipeline(pool_id) as connection:
        position = await fetch(connection, log_position())
    async with database.moment_since(pool_id, position) as connection:
        row = await (await connection.execute("SELECT pg_is_in_recovery()")).fetchone()
    assert row
    return bool(row[0])


async def a_pool(database: Database) -> str:
    """Return the id of the default pool."""
    [row] = await database.ask("SELECT id::text FROM pools WHERE name = 'default'")
    return str(row["id"])


async def test_a_replica_that_has_caught_up_is_read_from(database: Database) -> None:
    pool_id = await a_pool(database)
    assert await eventually(lambda: reads_from_replica(database, pool_id))
    # The log may go on between the two, and the replica is then behind for a moment.
    project = database.of_project("p")
    assert await eventually(lambda: reads_from_replica(project, pool_id))


async def test_a_project_sees_no_more_on_the_replica(database: Database) -> None:
    pool_id = await a_pool(database)
    await eventually(lambda: reads_from_replica(database, pool_id))
    async with database.of_project("p").moment_since(pool_id, "0/0") as connection:
        row = await (await connection.execute("SELECT current_user, current_setting('esker.project')")).fetchone()
    assert row == ("esker_project", "p")


async def test_what_was_just_written_is_found(client: httpx2.AsyncClient) -> None:
    for number in range(10):
        await remembered(client, f"The bridge {number} over the Aare is closed.")
        assert contents(await recalled(client, f"bridge {number} Aare", limit=1)) == [
            f"The bridge {number} over the Aare is closed."
        ]


async def test_a_replica_that_is_behind_hides_nothing(
    client: httpx2.AsyncClient, follower: Cluster, database: Database
) -> None:
    pool_id = await a_pool(database)
    with psycopg.connect(follower.url(OWNER), autocommit=True) as connection:
        connection.execute("SELECT pg_wal_replay_pause()")
    await remembered(client, "The ferry to Spiez leaves at noon.")
    assert contents(await recalled(client, "ferry Spiez", limit=1)) == ["The ferry to Spiez leaves at noon."]
    assert not await reads_from_replica(database, pool_id)


async def test_a_replica_that_is_gone_hides_nothing_and_is_not_waited_for_each_time(
    primary: Cluster, logged: list[str]
) -> None:
    gone = f"postgresql://esker_app@/esker?host={shared_folder()}/nowhere"
    async with Database(primary.url(), replica_url=gone) as database:
        pool_id = await a_pool(database)
        assert not await reads_from_replica(database, pool_id)
        assert not await reads_from_replica(database, pool_id)
    told = [line for line in logged if "the replica gives no answer" in line]
    assert len(told) == 1, "the second time it is not asked"


async def test_a_promoted_replica_is_not_read_from(primary: Cluster) -> None:
    with follower_of(primary) as promoted:
        async with Database(primary.url(), replica_url=promoted.url()) as database:
            pool_id = await a_pool(database)
            assert await eventually(lambda: reads_from_replica(database, pool_id))
            with psycopg.connect(promoted.url(OWNER), autocommit=True) as connection:
                connection.execute("SELECT pg_promote()")
            async with database.tenant(pool_id) as connection:
                await connection.execute("SELECT pg_current_xact_id()")
            assert not await reads_from_replica(database, pool_id)
