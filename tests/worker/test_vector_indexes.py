"""Indexes of large tiers: made and dropped by count, complete under filters, compared with the exact search daily."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest

from esker.server.app import make_parts
from esker.server.core.arrays import Vector
from esker.server.core.config.settings import Settings
from esker.server.core.recall.candidates import TextHit
from esker.server.core.records import Filter, Principal, Space
from esker.server.db.database import Connection, Database
from esker.server.db.embedded import DATABASE, Cluster
from esker.server.db.pipeline import fetch
from esker.server.store import search, vector_indexes, vectors
from esker.server.store.vectors import PoolSpace
from esker.server.usecases import build_vector_indexes
from esker.server.usecases.authenticate import SCOPES, create_pool, require_pool
from esker.server.usecases.build_vector_indexes import index_large_tiers, probe_indexes
from esker.server.usecases.find_nearest import find_nearest
from esker.server.usecases.inspect import weak_indexes
from esker.server.usecases.parts import Parts
from esker.server.usecases.report_status import backlog
from tests.support.clock import FakeClock
from tests.support.databases import cloned
from tests.support.vectors import note_with_vectors, unit_vectors

DIMENSION = 16
SPACE = Space("indexed_16", "m", "r", DIMENSION, "", "openai:http://x#m")
ROWS = 1_500
FEW = 30
LIMIT = 100


@pytest.fixture(autouse=True)
def small_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tier is large from 500 vectors on."""
    monkeypatch.setattr(build_vector_indexes, "LARGE", 500)
    monkeypatch.setattr(build_vector_indexes, "SMALL", 250)


@pytest.fixture(scope="module")
def large_template(cluster: Cluster) -> Generator[str]:
    """The name of a database whose pool has many vectors, a few of them in a project of their own, and an index."""
    with cloned(cluster) as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(build_vector_indexes, "LARGE", 500)
        asyncio.run(_fill(cluster.url(database=name)))
        yield name


async def _fill(database_url: str) -> None:
    async with Database(database_url) as database:
        parts = make_parts(Settings.from_environment({"ESKER_EMBEDDER": "none"}), database, FakeClock())
        pool = await require_pool(parts, "default")
        who = Principal(pool.id, pool.name, "test", frozenset(SCOPES))
        await note_with_vectors(parts, who, SPACE, unit_vectors(ROWS, DIMENSION, seed=1), project="large")
        await note_with_vectors(parts, who, SPACE, unit_vectors(FEW, DIMENSION, seed=2), project="small")
        await index_large_tiers(parts)


@pytest.fixture
def database_url(cluster: Cluster, request: pytest.FixtureRequest) -> Generator[str]:
    """A database of this test alone: a copy of the filled one for a test that uses `large`."""
    filled = "large" in request.fixturenames
    with cloned(cluster, request.getfixturevalue("large_template") if filled else DATABASE) as name:
        yield cluster.url(database=name)


@pytest.fixture
async def database(database_url: str) -> AsyncGenerator[Database]:
    """This database, open."""
    async with Database(database_url) as opened:
        yield opened


@pytest.fixture
def large(parts: Parts) -> Parts:
    """The parts of a server whose pool has many vectors and an index."""
    return parts


async def space_of(connection: Connection) -> PoolSpace:
    """Return the space of the present pool."""
    [space] = await vectors.spaces(connection)
    return space


async def nearest(
    parts: Parts, pool_id: str, vector: Vector, row_filter: Filter, *, exactly: bool = False
) -> list[TextHit]:
    """Search as recall does, or exactly."""
    async with parts.database.tenant(pool_id) as connection:
        if exactly:
            return await search.by_vector(connection, "memory", SPACE.name, vector, row_filter, LIMIT)
        size = (await fetch(connection, search.sizes(row_filter)))["memory"]
        return await find_nearest(connection, "memory", await space_of(connection), vector, row_filter, size, LIMIT)


async def indexed(parts: Parts, pool_id: str) -> frozenset[str]:
    """Return which tiers of a pool have an index."""
    async with parts.database.tenant(pool_id) as connection:
        return frozenset((await space_of(connection)).indexed)


async def test_a_large_tier_gets_an_index_and_a_tier_that_has_shrunk_loses_it(
    large: Parts, who: Principal, owner_url: str
) -> None:
    assert await indexed(large, who.pool_id) == {"memory"}
    await index_large_tiers(large)  # again, which changes nothing
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("DELETE FROM memories WHERE number % 4 > 0")
    await index_large_tiers(large)
    assert await indexed(large, who.pool_id) == {"memory"}  # 382 vectors remain: neither few nor many
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("DELETE FROM memories WHERE number % 8 > 0")
    await index_large_tiers(large)
    assert await indexed(large, who.pool_id) == set()


async def test_texts_without_vectors_do_not_make_a_tier_large(parts: Parts, who: Principal, owner_url: str) -> None:
    await note_with_vectors(parts, who, SPACE, unit_vectors(600, DIMENSION, seed=1))
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute(f"DELETE FROM embeddings_{SPACE.name} WHERE number % 3 > 0")  # type: ignore[arg-type]  # noqa: S608
    await index_large_tiers(parts)
    assert await indexed(parts, who.pool_id) == set()


async def test_the_index_agrees_with_the_exact_search(large: Parts, who: Principal) -> None:
    row_filter = Filter(large.clock())
    agreed = 0
    for vector in unit_vectors(20, DIMENSION, seed=3):
        exact = await nearest(large, who.pool_id, vector, row_filter, exactly=True)
        near = await nearest(large, who.pool_id, vector, row_filter)
        assert len(near) == LIMIT
        assert [hit.score for hit in near] == sorted((hit.score for hit in near), reverse=True)
        agreed += len({hit.id for hit in exact[:10]} & {hit.id for hit in near[:10]})
    assert agreed >= 0.98 * 200


async def test_under_a_filter_the_answer_is_complete(
    large: Parts, who: Principal, clock: FakeClock, owner_url: str
) -> None:
    with psycopg.connect(owner_url, autocommit=True) as connection:
        # The small project was said last.
        connection.execute("UPDATE memories SET said_at = said_at - interval '1 day' WHERE project = 'large'")
    [vector] = unit_vectors(1, DIMENSION, seed=3)
    everything = Filter(clock())
    for row_filter, expected in (
        (replace(everything, project="small"), FEW),
        (replace(everything, tags=["none has this"]), 0),
        (replace(everything, kinds=["note"]), LIMIT),
        (replace(everything, since=clock()), FEW),
    ):
        found = await nearest(large, who.pool_id, vector, row_filter)
        assert len(found) == expected, row_filter
        if expected < LIMIT:
            assert found == await nearest(large, who.pool_id, vector, row_filter, exactly=True), row_filter


async def test_a_small_pool_near_the_cluster_of_a_large_one_is_searched_whole(large: Parts, who: Principal) -> None:
    pool = await create_pool(large, "small")
    other = replace(who, pool_id=pool.id, pool_name=pool.name)
    await note_with_vectors(large, other, SPACE, unit_vectors(FEW, DIMENSION, seed=1))
    await index_large_tiers(large)
    assert await indexed(large, pool.id) == set()
    [vector] = unit_vectors(1, DIMENSION, seed=1)
    assert len(await nearest(large, pool.id, vector, Filter(large.clock()))) == FEW


async def test_without_its_index_the_search_is_exact(large: Parts, who: Principal, owner_url: str) -> None:
    [vector] = unit_vectors(1, DIMENSION, seed=3)
    row_filter = Filter(large.clock())
    with psycopg.connect(owner_url, autocommit=True) as connection:
        row = connection.execute("SELECT indexname FROM pg_indexes WHERE indexname LIKE 'near_%'").fetchone()
        assert row is not None
        connection.execute(f"DROP INDEX {row[0]}")  # type: ignore[arg-type]
    assert await indexed(large, who.pool_id) == set()
    assert await nearest(large, who.pool_id, vector, row_filter) == await nearest(
        large, who.pool_id, vector, row_filter, exactly=True
    )
    await index_large_tiers(large)
    assert await indexed(large, who.pool_id) == {"memory"}


@asynccontextmanager
async def _writing(owner_url: str) -> AsyncGenerator[None]:
    connection = await psycopg.AsyncConnection.connect(owner_url)
    async with connection:
        await connection.execute(f"DELETE FROM embeddings_{SPACE.name} WHERE number = 0")  # type: ignore[arg-type]  # noqa: S608
        yield
        await connection.rollback()


async def test_a_long_transaction_is_not_waited_for_and_the_index_is_made_later(
    parts: Parts, who: Principal, owner_url: str, logged: list[str]
) -> None:
    await note_with_vectors(parts, who, SPACE, unit_vectors(600, DIMENSION, seed=1))
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("ALTER FUNCTION create_vector_index SET lock_timeout = '10ms'")
    async with _writing(owner_url):
        await index_large_tiers(parts)
        assert any("failed" in line for line in logged)
        assert await indexed(parts, who.pool_id) == set()
    await index_large_tiers(parts)
    assert await indexed(parts, who.pool_id) == {"memory"}


# Probes -----------------------------------------------------------------------------------------------------------


async def test_every_index_is_probed_once_a_day(large: Parts, who: Principal, clock: FakeClock) -> None:
    await probe_indexes(large)
    async with large.database.tenant(who.pool_id) as connection:
        [first] = await vector_indexes.probes(connection)
    assert (first.tier, first.probed_at, first.questions) == ("memory", clock(), 20)
    assert first.agreement >= 0.98
    clock.now += timedelta(hours=23)
    await probe_indexes(large)
    async with large.database.tenant(who.pool_id) as connection:
        assert await vector_indexes.probes(connection) == [first]
    clock.now += timedelta(hours=2)
    await probe_indexes(large)
    async with large.database.tenant(who.pool_id) as connection:
        [second] = await vector_indexes.probes(connection)
    assert second.probed_at == clock()
    assert (await backlog(large))["lowest_index_agreement"] == second.agreement
    assert await weak_indexes(large) == {}


async def test_an_index_that_misses_rows_is_noticed(
    large: Parts, who: Principal, owner_url: str, logged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await backlog(large))["lowest_index_agreement"] == 1
    through_index = search.by_vector_index

    async def misses_half(*arguments: object, **named: object) -> list[TextHit]:
        found = await through_index(*arguments, **named)  # type: ignore[arg-type]
        return found[::2]

    monkeypatch.setattr(search, "by_vector_index", misses_half)
    await probe_indexes(large)
    assert any("finds 5" in line or "finds 4" in line for line in logged)
    assert 0.4 < (await backlog(large))["lowest_index_agreement"] < 0.6
    [weak] = (await weak_indexes(large))["default"]
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute(f"DROP INDEX {weak.index}")  # type: ignore[arg-type]
    assert await weak_indexes(large) == {}
    await index_large_tiers(large)
    assert await indexed(large, who.pool_id) == {"memory"}
    assert await weak_indexes(large) == {}
    monkeypatch.undo()
    await probe_indexes(large)  # at once, since this one was never probed
    assert (await backlog(large))["lowest_index_agreement"] >= 0.98
