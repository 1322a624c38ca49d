"""Frequent statements on a pool that was just filled, before Postgres has statistics of it."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product
from typing import Any, get_args

import psycopg
import pytest

from esker.server.app import make_parts
from esker.server.core.config.settings import Settings
from esker.server.core.records import Filter, Principal, Space
from esker.server.db.database import Database
from esker.server.db.embedded import Cluster
from esker.server.db.statements import for_space
from esker.server.store import memories, messages, search, sessions, vectors
from esker.server.store.memories import filter_values
from esker.server.usecases.authenticate import SCOPES, require_pool
from esker.server.usecases.embed import register
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.open_session import SessionRequest, open_session
from esker.server.usecases.parts import Parts
from esker.server.usecases.remember import Note, remember
from tests.support.clock import FakeClock
from tests.support.kept_servers import KeptDatabase
from tests.support.plans import PlanMode, planned
from tests.support.vectors import matrix

ROWS = 2_000
SPACE = Space("plans_3", "m", "r", 3, "", "openai:http://x#m")


@pytest.fixture
def kept_database(new_database: KeptDatabase) -> KeptDatabase:
    """A new database: deleted rows of other tests would count in the planner's estimates."""
    return new_database


@dataclass(frozen=True, slots=True)
class FilledDatabase:
    """A database and its owner's connection, the id of its pool with many rows, and when that was filled."""

    url: str
    owner: psycopg.AsyncConnection
    pool_id: str
    now: datetime


@pytest.fixture(scope="module")
async def filled(cluster: Cluster) -> AsyncGenerator[FilledDatabase]:
    """A pool with many rows that share a word, and vectors for them; tests only read it."""
    made = await KeptDatabase.made(cluster)
    database, parts = made.open, make_parts(Settings(embedder="none"), made.open, FakeClock())
    pool = await require_pool(parts, "default")
    who = Principal(pool.id, pool.name, "test", frozenset(SCOPES))
    await vectors.create_space(database, SPACE)
    await register(parts, SPACE, or_retired=False)
    for start in range(0, ROWS, 1_000):
        await remember(parts, who, [Note(f"River number {n} runs into the sea.") for n in range(start, start + 1_000)])
    async with database.tenant(who.pool_id) as connection:
        batch = await vectors.claim(connection, SPACE.name, parts.clock(), timedelta(0), tried=False, limit=ROWS)
        new = [matrix([[1.0, float(n), 2.0]]) for n in range(len(batch.rows))]
        assert await vectors.store(connection, batch, batch.rows, new, parts.clock()) == ROWS
    yield FilledDatabase(made.url, made.owner, who.pool_id, parts.clock())
    await made.stack.aclose()


WORDS = {
    "tier": "m",
    "terms": ["river", "number"],
    "words": [0, 1],
    "counts": [None, None],
    "rarest": 6,
    "max_unknown": 2,
    "names": [],
    "max_parts": 20,
    "enough": 2_000,
    "most": 20_000,
    "may_be_late": True,
}
MODES = get_args(PlanMode)
STATEMENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "keyword": (search.SQL["keyword_memory"], {**WORDS, "limit": 50, "looked_up": 150, "ranked": 600}),
    "keyword in scope": (
        search.SQL["keyword_memory_in_scope"],
        {**WORDS, "limit": 50, "looked_up": 150, "ranked": 600},
    ),
    "vector": (for_space(search.SQL["vector_memory"], SPACE.name), {"vector": "[1,2,3]", "limit": 50}),
    **{
        name: (
            for_space(search.SQL[name], SPACE.name),
            {
                **WORDS,
                "vector": "[1,2,3]",
                "by_chance": 0.07,
                "limit": 50,
                "looked_up": 150,
                "ranked": 600,
            },
        )
        for name in ("candidates_memory", "candidates_memory_filtered")
    },
    "neighbours": (
        for_space(search.SQL["neighbours_near"], SPACE.name),
        {**WORDS, "vector": "[1,2,3]", "by_chance": 0.07, "numbers": list(range(1, 41)), "known": []}
        | {"weights": [1.0, 2.0], "mean_terms": 5.0, "ideal": 3.0},
    ),
    "enqueue_missing": (for_space(vectors.SQL["enqueue_missing"], SPACE.name), {"space": SPACE.name}),
}


async def test_no_row_is_compared_with_every_other(filled: FilledDatabase) -> None:
    analysed = "SELECT count(*) FROM pg_stat_user_tables WHERE last_analyze IS NOT NULL"
    assert await (await filled.owner.execute(analysed)).fetchone() == (0,)
    for mode, (name, (statement, own)) in product(MODES, STATEMENTS.items()):
        values = {**filter_values(Filter(filled.now)), "now": filled.now, **own}
        for node in planned(filled.url, filled.pool_id, statement, values, mode):
            # A query has a few words, which may be compared with each other.
            assert node.get("Rows Removed by Join Filter", 0) <= 10, (mode, name, node["Node Type"])
            # A row is looked up by its key, or by its key and each word, whatever the planner estimates.
            if node.get("Actual Loops", 1) > 10:
                words = 1 if "Index" in node["Node Type"] else len(WORDS["terms"])
                assert node.get("Actual Rows", 0) <= words, (mode, name, node)


async def test_recall_looks_up_only_the_rows_that_it_returns(filled: FilledDatabase) -> None:
    statement, own = STATEMENTS["keyword"]
    for mode in MODES:
        plan = planned(filled.url, filled.pool_id, statement, {**filter_values(Filter(filled.now)), **own}, mode)
        of_memories = [node for node in plan if node.get("Relation Name") == "memories" and "Index Cond" in node]
        assert [node["Actual Loops"] for node in of_memories if node["Actual Loops"] > 1] == [50], mode


async def test_the_messages_behind_hits_are_looked_up_by_key(filled: FilledDatabase) -> None:
    # The tests above need a database without statistics.
    await filled.owner.execute("ANALYZE")
    ids = [row[0] async for row in await filled.owner.execute("SELECT id FROM memories LIMIT 40")]
    for mode in MODES:
        plan = planned(filled.url, filled.pool_id, memories.SQL["said_in"], {"ids": ids}, mode)
        assert not [
            node for node in plan if node.get("Relation Name") == "memories" and node["Node Type"] == "Seq Scan"
        ]


async def test_sessions_are_listed_along_an_index_and_not_sorted(database: Database, who: Principal) -> None:
    asked = {"external_id": None, "project": None, "unobserved": False, "unreflected": False, "limit": 20}
    for mode, (begun_at, before) in product(MODES, (("2026-01-01T00:00:00Z", "ses_x"), (None, None))):
        values = {**asked, "begun_at": begun_at, "before": before}
        plan = planned(database.url, who.pool_id, sessions.SQL["list"], values, mode)
        read = [node["Index Name"] for node in plan if node.get("Relation Name") == "sessions"]
        assert read == ["sessions_by_begin"], (mode, begun_at)
        assert not [node for node in plan if node["Node Type"] == "Sort"], (mode, begun_at)


async def test_an_expansion_reads_only_the_messages_that_it_shows(
    database: Database, who: Principal, parts: Parts
) -> None:
    session = await open_session(parts, who.pool_id, SessionRequest("api", "s"))
    said = [IncomingMessage(f"m{n}", "user", f"Message {n}.") for n in range(ROWS)]
    await ingest(parts, who.pool_id, session.id, said)
    seqs = list(range(100, 1_900, 100))
    values = {"sessions": [session.id] * len(seqs), "seqs": seqs, "around": 2, "reach": 100, "characters": 1_000}
    for mode in MODES:
        plan = planned(database.url, who.pool_id, messages.SQL["around"], values, mode)
        read = [node for node in plan if node.get("Relation Name") == "messages"]
        assert {node["Node Type"] for node in read} <= {"Index Scan", "Index Only Scan"}, mode
        assert sum(node["Actual Rows"] * node["Actual Loops"] for node in read) == (4 + 5) * len(seqs), mode
        assert sum(node.get("Rows Removed by Filter", 0) for node in read) == 0, mode
