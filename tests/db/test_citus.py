"""How far the schema and the statements go on Citus; `docs/decisions/citus.md` says what is missing.

ESKER_TEST_CITUS_URL names an empty database of a coordinator, as a superuser, whose nodes have pgvector and the roles
`esker_app` and `esker_project`. Each run needs a new one.
"""

import os
import re
from collections.abc import Generator
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from esker.server.db.migrate import migrate
from tests.support.shipped_statements import EVERY, SPACE, with_numbered_parameters
from tests.support.waiting import eventually_here

URL = os.environ.get("ESKER_TEST_CITUS_URL", "")
pytestmark = pytest.mark.skipif(not URL, reason="ESKER_TEST_CITUS_URL is not set")

# No request runs the statements of these files.
WITHOUT_REQUESTS = {"bench", "dumps", "embedded", "history", "inspection", "purge", "replica", "tenancy"}
# Statements that Citus does not plan even with the pool as a constant.
REFUSED = {
    "evaluation.sample_memories",
    "memories.add_restatements",
    "memories.raise",
    "memories.reword",
    "packs.insert",
    "pool_import.add_restatements",
    "pool_import.insert_sessions",
    "search.within_memory",
    "search.within_passage",
}
_WITH_SUBQUERIES: LiteralString = """
    SELECT polname, polrelid::regclass::text FROM pg_policy
    WHERE coalesce(pg_get_expr(polqual, polrelid), '') || coalesce(pg_get_expr(polwithcheck, polrelid), '') ~ 'SELECT'
"""
_FOREIGN_KEYS: LiteralString = """
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE contype = 'f' AND connamespace = 'public'::regnamespace AND conparentid = 0
"""
_POOL_TABLES: LiteralString = """
    SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'pool_id'
    WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
"""


@pytest.fixture(scope="module")
def coordinator() -> Generator[psycopg.Connection]:
    """A coordinator with the schema, not distributed yet."""
    with psycopg.connect(URL, autocommit=True) as connection:
        # Citus would send GRANT … WITH SET to its nodes in a wrong form.
        migrate(make_conninfo(URL, options="-c citus.enable_ddl_propagation=off"))
        connection.execute("SELECT create_embedding_space(%s, 3)", [SPACE])
        yield connection


@pytest.fixture(scope="module")
def distributed(coordinator: psycopg.Connection) -> psycopg.Connection:
    """The same with every table of pools distributed. Policies with subqueries, which Citus refuses, are left out."""
    for policy, table in coordinator.execute(_WITH_SUBQUERIES).fetchall():
        drop = sql.SQL("DROP POLICY {} ON {}").format(sql.Identifier(policy), sql.Identifier(table))
        coordinator.execute(drop)
    keys = coordinator.execute(_FOREIGN_KEYS).fetchall()
    for table, name, _ in keys:
        drop = sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(sql.Identifier(table), sql.Identifier(name))
        coordinator.execute(drop)
    coordinator.execute("SET citus.enable_unsafe_triggers = on")
    coordinator.execute("SELECT create_reference_table('pools')")
    for (table,) in coordinator.execute(_POOL_TABLES).fetchall():
        coordinator.execute("SELECT create_distributed_table(%s, 'pool_id')", [table])
    for table, name, definition in keys:
        head = sql.SQL("ALTER TABLE {} ADD CONSTRAINT {} ").format(sql.Identifier(table), sql.Identifier(name))
        coordinator.execute((head.as_string() + definition).encode())
    return coordinator


def test_every_table_distributes_by_pool_with_its_keys(distributed: psycopg.Connection) -> None:
    [[tables, groups]] = distributed.execute(
        "SELECT count(*), count(DISTINCT colocationid) FROM pg_dist_partition WHERE partmethod = 'h'"
    ).fetchall()
    assert tables == len(distributed.execute(_POOL_TABLES).fetchall())
    assert groups == 1, "all rows of a pool are on one node"


def test_statements_are_planned_if_the_pool_is_a_constant(distributed: psycopg.Connection) -> None:
    distributed.execute("SET citus.enable_ddl_propagation = off")
    distributed.execute("ALTER FUNCTION current_pool() IMMUTABLE")
    statements = {f"{path.stem}.{name}": (path, name) for path, name in EVERY if path.stem not in WITHOUT_REQUESTS}
    refused = {
        label for label, (path, name) in statements.items() if not _is_planned(with_numbered_parameters(path, name))
    }
    assert refused == REFUSED


def _is_planned(statement: str) -> bool:
    """Return whether Citus plans a statement; some end the process of Postgres instead."""
    arguments = ", ".join(["NULL"] * len(set(re.findall(r"\$\d+", statement))))
    execute = f"EXPLAIN EXECUTE tried{f'({arguments})' if arguments else ''}"
    connection = eventually_here(_connected)
    assert connection
    with connection:
        try:
            connection.execute("SET plan_cache_mode = force_custom_plan")
            connection.execute("SET ROLE esker_app")
            connection.execute("SELECT set_config('esker.pool_id', gen_random_uuid()::text, false)")
            connection.execute(f"PREPARE tried AS {statement}".encode())
            connection.execute(execute.encode())
        except psycopg.Error:
            return False
        return True


def _connected() -> psycopg.Connection | None:
    try:
        return psycopg.connect(URL, autocommit=True, prepare_threshold=None)
    except psycopg.OperationalError:
        return None  # it recovers
