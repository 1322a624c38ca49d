"""Vectors travel between Postgres and numpy in binary, exactly as the database stores them."""

from collections.abc import Generator

import numpy as np
import pytest
from pgvector import HalfVector

from esker.server.core.records import Filter, Principal, Space
from esker.server.db.database import Database
from esker.server.db.embedded import OWNER, Cluster
from esker.server.db.migrate import migrate
from esker.server.store import search, vector_indexes, vectors
from esker.server.usecases.parts import Parts
from tests.support.databases import cloned
from tests.support.vectors import note_with_vectors, unit_vectors

SPACE = Space("binary_16", "m", "r", 16, "", "openai:http://x#m")


@pytest.fixture
def empty_url(cluster: Cluster) -> Generator[str]:
    """A database without tables, as its owner."""
    with cloned(cluster, template="template1") as name:
        yield cluster.url(OWNER, name)


async def test_no_vector_is_written_out_as_text_and_what_is_read_is_what_was_stored(
    parts: Parts, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_text(*_: object) -> str:
        raise AssertionError("a vector is written out as text")

    monkeypatch.setattr(HalfVector, "to_text", no_text)
    monkeypatch.setattr(HalfVector, "from_text", no_text)
    made = unit_vectors(100, 16, seed=1)
    await note_with_vectors(parts, who, SPACE, made)
    async with parts.database.tenant(who.pool_id) as connection:
        ids = [row[0] for row in await (await connection.execute("SELECT id FROM memories")).fetchall()]
        stored = np.array(list((await vectors.of_rows(connection, ids)).values()))
        sample = await vector_indexes.some_vectors(connection, SPACE.name, "memory", "seed", 100)
        [nearest, *_] = await search.by_vector(
            connection, "memory", SPACE.name, stored[3], Filter(parts.clock()), limit=5
        )
        of_nearest = (await vectors.of_rows(connection, [nearest.id]))[nearest.id]
    expected = made.astype(np.float16).astype(np.float32)
    assert stored.dtype == np.float32
    assert sorted(stored.tolist()) == sorted(expected.tolist())
    assert sorted(vector.tolist() for _, vector in sample) == sorted(expected.tolist())
    assert nearest.score == pytest.approx(1.0)
    assert of_nearest.tolist() == stored[3].tolist()


async def test_a_connection_that_is_older_than_the_tables_carries_vectors(empty_url: str) -> None:
    async with Database(empty_url, connections=1) as database:
        before = await database.ask("SELECT pg_backend_pid() AS pid, to_regtype('halfvec') AS known")
        assert before[0]["known"] is None
        migrate(empty_url)
        found = await database.ask(
            "SELECT pg_backend_pid() AS pid, %(vector)s::halfvec::text AS vector", {"vector": HalfVector([1.0, 0.5])}
        )
    assert found == [{"pid": before[0]["pid"], "vector": "[1,0.5]"}]
