"""The schema distributes by pool: every key begins with the pool, and every statement reads rows of one pool alone.

Row-level security adds the pool to what a statement reads, so the plans are checked and not the texts.
"""

import re
from collections.abc import Generator, Iterator, Mapping
from typing import Any

import psycopg
import pytest

from esker.server.db.embedded import OWNER, Cluster
from esker.server.db.statements import Statements
from tests.support.databases import cloned
from tests.support.shipped_statements import EVERY, SERVER, SPACE, with_numbered_parameters

# Small tables that every machine has a copy of.
REFERENCE_TABLES = {"pools", "schema_migrations"}
# Statements of requests and jobs; those elsewhere are for maintenance by the owner, for migrations and for benchmarks.
REQUESTS = SERVER / "store" / "sql"
# Questions about all pools. Each is a function of the owner that returns ids and counts.
OF_ALL_POOLS = {
    "abandoned_holders",
    "backlog",
    "chosen_sources",
    "coverage",
    "find_api_key",
    "operations",
    "pools_with_embedding_work",
    "pools_with_expired_memories",
    "pools_with_former_projects",
    "pools_with_jobs",
    "pools_with_quarantine",
    "pools_with_retention",
    "pools_without_space",
    "vector_tiers_to_change",
    "vector_tiers_to_probe",
}
# The statement that makes a pool.
NEW_POOL = ("pools", "create")
# Functions of Postgres that read no table.
WITHOUT_ROWS = re.compile(r"unnest|generate_series|string_to_table|json_?")

_KEYS = """
    SELECT conrelid::regclass::text || '.' || conname AS name, pg_get_constraintdef(oid) AS definition
    FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace AND contype IN ('p', 'u', 'f', 'x')
      AND conrelid::regclass::text <> ALL (%s)
    UNION
    SELECT indrelid::regclass::text || '.' || indexrelid::regclass::text, pg_get_indexdef(indexrelid)
    FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
    WHERE relnamespace = 'public'::regnamespace AND indisunique AND relname <> ALL (%s)
"""
_REFERENCES = """
    SELECT conrelid::regclass::text, confrelid::regclass::text, pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype = 'f'
"""
_FUNCTIONS = """
    SELECT oid::regprocedure::text, prosrc FROM pg_proc p
    WHERE pronamespace = 'public'::regnamespace
      AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.objid = p.oid AND e.deptype = 'e')
"""
_TABLES = """
    SELECT relname, EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attname = 'pool_id' AND attnotnull)
    FROM pg_class c WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'm')
"""

Node = Mapping[str, Any]


@pytest.fixture(scope="module")
def connection(cluster: Cluster) -> Generator[psycopg.Connection]:
    """A connection of the owner to a database with a table of vectors."""
    with cloned(cluster) as name, psycopg.connect(cluster.url(OWNER, name), autocommit=True) as connected:
        connected.execute("SELECT create_embedding_space(%s, 3)", [SPACE])
        yield connected


def test_every_table_belongs_to_a_pool_or_is_small(connection: psycopg.Connection) -> None:
    tables = dict(connection.execute(_TABLES).fetchall())
    assert {name for name, of_a_pool in tables.items() if not of_a_pool} == REFERENCE_TABLES


def test_every_key_begins_with_the_pool(connection: psycopg.Connection) -> None:
    small = sorted(REFERENCE_TABLES)
    keys = dict(connection.execute(_KEYS, [small, small]).fetchall())
    assert {name: text for name, text in keys.items() if not re.search(r"\((?:pool_id\b)", text)} == {}


def test_every_foreign_key_stays_in_the_pool(connection: psycopg.Connection) -> None:
    """It leads to a row of the same pool, or to the pool itself."""
    for table, target, definition in connection.execute(_REFERENCES):
        same_pool = re.search(rf"FOREIGN KEY \(pool_id, .*REFERENCES {target}\(pool_id, ", definition)
        assert same_pool or (target == "pools" and "FOREIGN KEY (pool_id) REFERENCES" in definition), table


def test_every_conflict_target_carries_the_pool(connection: psycopg.Connection) -> None:
    texts = {f"{path.stem}.{name}": Statements(path)[name] for path, name in EVERY if (path.stem, name) != NEW_POOL}
    texts |= dict(connection.execute(_FUNCTIONS).fetchall())
    targets = {name: re.findall(r"ON CONFLICT\b\s*(\([^)]*\)|\w+)", text) for name, text in texts.items()}
    assert {name: found for name, found in targets.items() if any(not t.startswith("(pool_id") for t in found)} == {}


def test_every_scan_is_of_one_pool(connection: psycopg.Connection) -> None:
    pool_tables = {name for name, of_a_pool in connection.execute(_TABLES).fetchall() if of_a_pool}
    connection.execute("SET ROLE esker_app")
    unbound: list[str] = []
    for path, name in EVERY:
        if path.parent == REQUESTS:
            statement = with_numbered_parameters(path, name)
            plan = connection.execute(f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {statement}".encode()).fetchone()
            assert plan
            unbound += [f"{path.stem}.{name}: {what}" for what in _of_several_pools(plan[0][0]["Plan"], pool_tables)]
    assert unbound == []


def _of_several_pools(node: Node, pool_tables: set[str]) -> Iterator[str]:
    """Yield the tables that a plan reads without the condition on the pool, and the functions it calls."""
    parts: list[Node] = node.get("Plans", [])
    conditions = (node.get(kind, "") for kind in ("Index Cond", "Recheck Cond", "Filter"))
    is_bound = any("pool_id = " in condition for condition in conditions)
    table, function = node.get("Relation Name"), node.get("Function Name")
    if table in pool_tables and node["Node Type"] != "ModifyTable" and not is_bound:
        yield str(table)
    if function and not WITHOUT_ROWS.match(function) and function not in OF_ALL_POOLS:
        yield str(function)
    for part in parts:
        yield from _of_several_pools(part, pool_tables)


def test_a_scan_without_the_pool_is_noticed(connection: psycopg.Connection) -> None:
    """The owner sees all pools, so the same check of his plan must find something."""
    connection.execute("RESET ROLE")
    plan = connection.execute(
        "EXPLAIN (FORMAT JSON) SELECT FROM memories m JOIN sessions s ON s.id = m.session_id"
    ).fetchone()
    assert plan
    assert set(_of_several_pools(plan[0][0]["Plan"], {"memories", "sessions"})) == {"memories", "sessions"}
