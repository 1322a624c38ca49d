"""Vector searches: the statement decides whether the index of a large tier is used, not the planner."""

from dataclasses import dataclass
from typing import get_args

import psycopg
import pytest
from pgvector import HalfVector

from esker.server.core.records import Filter, Principal, Space
from esker.server.db.database import Database
from esker.server.db.statements import for_pool, for_space
from esker.server.store import search, vector_indexes
from esker.server.store.memories import filter_values
from esker.server.usecases.parts import Parts
from tests.support.kept_servers import KeptDatabase
from tests.support.plans import PlanMode, planned
from tests.support.vectors import note_with_vectors, unit_vectors

ROWS, FEW = 2_000, 50
DIMENSION = 16
SPACE = Space("plans_16", "m", "r", DIMENSION, "", "openai:http://x#m")


@dataclass
class Indexed:
    """A pool whose memories have vectors and an index of them."""

    app_url: str
    who: Principal
    parts: Parts

    def used(self, statement: str, mode: PlanMode) -> set[str]:
        """Return the indexes that a statement of search.sql used."""
        text = search.SQL[statement]
        composed = for_pool(text, SPACE.name, self.who.pool_id) if "{pool}" in text else for_space(text, SPACE.name)
        [vector] = unit_vectors(1, DIMENSION, seed=99)
        values = {**filter_values(Filter(self.parts.clock())), "vector": HalfVector(vector).to_text(), "limit": 100}
        # The setting of `by_vector_index`.
        how = "&options=-c%20enable_sort%3Doff" if "{pool}" in text else ""
        plan = planned(self.app_url + how, self.who.pool_id, composed, values, mode)
        return {str(node["Index Name"]) for node in plan if "Index Name" in node}


@pytest.fixture
def kept_database(new_database: KeptDatabase) -> KeptDatabase:
    """A new database: deleted rows of other tests would count in the planner's estimates."""
    return new_database


async def index(parts: Parts, who: Principal, database_url: str, rows: int) -> Indexed:
    """Fill a pool with rows and vectors, and index the vectors."""
    await note_with_vectors(parts, who, SPACE, unit_vectors(rows, DIMENSION, seed=1))
    async with parts.database.tenant(who.pool_id) as connection:
        assert await vector_indexes.create(connection, SPACE.name, "memory")
    return Indexed(database_url, who, parts)


@pytest.fixture
async def indexed(parts: Parts, who: Principal, database_url: str) -> Indexed:
    """A pool with an index and many rows."""
    return await index(parts, who, database_url, ROWS)


@pytest.fixture
async def few_indexed(parts: Parts, who: Principal, database_url: str) -> Indexed:
    """Such a pool with few rows, for what does not depend on their number."""
    return await index(parts, who, database_url, FEW)


async def test_only_the_approximate_search_uses_the_index(indexed: Indexed, owner_url: str) -> None:
    with psycopg.connect(owner_url, autocommit=True) as connection:
        for analysed in (False, True):
            if analysed:
                connection.execute("ANALYZE")
            for mode in get_args(PlanMode):
                near = {name for name in indexed.used("near_memory", mode) if name.startswith("near_")}
                assert len(near) == 1, (analysed, mode)
                for exact in ("vector_memory", "filtered_memory"):
                    used = indexed.used(exact, mode)
                    assert not {name for name in used if name.startswith("near_")}, (analysed, mode, exact)


async def test_the_planner_is_free_again_after_a_search_by_index(few_indexed: Indexed, database: Database) -> None:
    [vector] = unit_vectors(1, DIMENSION, seed=99)
    async with database.tenant(few_indexed.who.pool_id) as connection:
        row_filter = Filter(few_indexed.parts.clock())
        assert await search.by_vector_index(
            connection, "memory", SPACE.name, few_indexed.who.pool_id, vector, row_filter, limit=10
        )
        row = await (await connection.execute("SHOW enable_sort")).fetchone()
    assert row == ("on",)


async def test_the_largest_possible_vectors_fit_on_a_page(database: Database, parts: Parts, who: Principal) -> None:
    space = Space("largest_4000", "m", "r", 4_000, "", "openai:http://x#m")
    await note_with_vectors(parts, who, space, unit_vectors(3, 4_000, seed=1))
    async with database.tenant(who.pool_id) as connection:
        found = await search.by_vector(
            connection, "memory", space.name, unit_vectors(1, 4_000, seed=1)[0], Filter(parts.clock()), limit=10
        )
    assert len(found) == 3


async def test_the_settings_of_the_index_hold_for_every_connection(database: Database, who: Principal) -> None:
    shown = "SELECT current_setting('hnsw.iterative_scan') AS scan, current_setting('hnsw.ef_search') AS ef"
    async with database.tenant(who.pool_id) as connection:
        await connection.execute("SELECT '[1]'::halfvec")
        row = await (await connection.execute(shown)).fetchone()
    assert row == ("relaxed_order", "200")


async def test_naming_another_pool_in_a_search_shows_none_of_its_rows(
    few_indexed: Indexed, database: Database, owner_url: str
) -> None:
    with psycopg.connect(owner_url, autocommit=True) as connection:
        row = connection.execute("INSERT INTO pools (name) VALUES ('other') RETURNING id::text").fetchone()
    assert row is not None
    [vector] = unit_vectors(1, DIMENSION, seed=99)
    row_filter = Filter(few_indexed.parts.clock())
    async with database.tenant(row[0]) as connection:
        found = await search.by_vector_index(
            connection, "memory", SPACE.name, few_indexed.who.pool_id, vector, row_filter, limit=10
        )
    assert found == []
