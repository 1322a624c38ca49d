"""The statements of a pack read few rows of a pool of any size, with or without statistics of Postgres."""

from collections.abc import Generator, Mapping
from itertools import product
from typing import Any, get_args

import psycopg
import pytest

from esker.server.core.pack.walks import walks_for
from esker.server.db.embedded import OWNER, Cluster
from esker.server.db.statements import as_json
from esker.server.store import memories
from tests.support.clock import START
from tests.support.databases import cloned
from tests.support.filling import fill_pool
from tests.support.plans import PlanMode, planned

ROWS = 12_000
LIMIT = 20
# Rows of a walk that a filter may discard before upkeep: those of the session, and expired ones.
PASSED_BY = 100


@pytest.fixture(scope="module", params=["before Postgres has counted", "after"])
def template(request: pytest.FixtureRequest, cluster: Cluster) -> Generator[tuple[str, str]]:
    """The name of a database whose pool has many rows, and the id of the pool."""
    with cloned(cluster) as name:
        owner_url = cluster.url(OWNER, name)
        with psycopg.connect(owner_url, autocommit=True) as connection:
            row = connection.execute("SELECT id::text FROM pools").fetchone()
            assert row is not None
            fill_pool(owner_url, row[0], ROWS, now=START)
            if request.param == "after":
                connection.execute("ANALYZE memories")
        yield name, row[0]


@pytest.fixture
def database_url(cluster: Cluster, template: tuple[str, str]) -> Generator[str]:
    """A copy of this database."""
    with cloned(cluster, template[0]) as name:
        yield cluster.url(database=name)


@pytest.fixture
def filled(template: tuple[str, str]) -> str:
    """The id of its pool."""
    return template[1]


def walks_of(project: str | None, floor: str = "1970-01-01T00:00:00Z") -> str:
    """Return the first page of each walk as the statements take it."""
    return as_json(
        {
            "number": number,
            "of_kind": walk.kind,
            "of_priority": walk.priority,
            "of_project": walk.project or "",
            "used_by": "2200-01-01T00:00:00Z",
            "after_id": "",
            "floor": floor,
        }
        for number, walk in enumerate(walks_for(project))
    )


def read_of_memories(plan: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the nodes that read memories."""
    return [node for node in plan if node.get("Relation Name") == "memories" and node["Actual Loops"] > 0]


async def test_a_walk_reads_its_page_and_no_more(filled: str, database_url: str) -> None:
    for mode, project in product(get_args(PlanMode), (None, "large", "small", "unknown")):
        statement = memories.SQL["next_of_project" if project else "next_of_pool"]
        values = {"walks": walks_of(project), "session": "ses_none", "now": START, "limit": LIMIT}
        plan = planned(database_url, filled, statement, values, mode)
        reading = read_of_memories(plan)
        index = "memories_by_rank_in_project" if project else "memories_by_rank"
        assert {node.get("Index Name") for node in reading} == {index}, (mode, project)
        assert {node["Node Type"] for node in reading} == {"Index Scan"}, (mode, project)
        assert not [node for node in plan if "Sort" in node["Node Type"]], (mode, project)
        for node in reading:
            assert node["Actual Rows"] <= LIMIT, (mode, project)
            assert node.get("Rows Removed by Filter", 0) <= PASSED_BY, (mode, project)


async def test_expired_and_replaced_rows_are_not_read(filled: str, database_url: str, owner_url: str) -> None:
    with psycopg.connect(owner_url) as connection:
        connection.execute("UPDATE memories SET expired = true WHERE valid_until <= %s", [START])
    values = {"walks": walks_of(None), "session": "ses_none", "now": START, "limit": LIMIT}
    for mode in get_args(PlanMode):
        for node in read_of_memories(planned(database_url, filled, memories.SQL["next_of_pool"], values, mode)):
            assert node.get("Rows Removed by Filter", 0) == 0, mode


async def test_no_statement_of_a_pack_reads_the_whole_pool(filled: str, database_url: str) -> None:
    values = {"session": "ses_none", "project": "large", "now": START, "limit": LIMIT}
    for mode, statement in product(get_args(PlanMode), ("pinned", "own_pack_rows")):
        for node in read_of_memories(planned(database_url, filled, memories.SQL[statement], values, mode)):
            assert "Scan" not in node["Node Type"] or node.get("Index Name"), (mode, statement, node["Node Type"])
            assert node["Actual Rows"] * node["Actual Loops"] <= LIMIT, (mode, statement)
            assert node.get("Rows Removed by Filter", 0) <= PASSED_BY, (mode, statement)
