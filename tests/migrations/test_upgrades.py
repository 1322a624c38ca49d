"""Upgrades: from every released version the same schema, whatever is stored, also if one is killed or has to wait."""

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterable

import psycopg
import pytest

from esker.server.app import make_parts
from esker.server.core.config.settings import Settings
from esker.server.core.errors import Misconfigured, Unavailable
from esker.server.db import migrate as module
from esker.server.db.database import Database
from esker.server.db.embedded import OWNER, Cluster
from esker.server.db.migrate import Migration, migrate, migrations, newest, pending
from tests.migrations.seeds import seed
from tests.support.databases import cloned
from tests.support.invariants import broken
from tests.support.processes import ROOT, environment
from tests.support.waiting import PATIENCE, eventually_here

SHIPPED = migrations()
# Up to here, migrations were released before the rule that others go on with what older servers read.
_BEFORE_THE_RULE = 16


@pytest.fixture
def empty_url(cluster: Cluster) -> Generator[str]:
    """An empty database, as its owner."""
    with cloned(cluster, template="template1") as name:
        yield cluster.url(OWNER, name)


@pytest.fixture(scope="module")
def fresh(cluster: Cluster) -> Iterable[set[str]]:
    """The schema of a database that was never another, with a space of vectors."""
    with cloned(cluster, template="template1") as name:
        migrate(cluster.url(OWNER, name))
        with psycopg.connect(cluster.url(OWNER, name)) as connection:
            connection.execute("SELECT create_embedding_space('old_3', 3)")
        yield catalog(cluster.url(OWNER, name))


def catalog(url: str) -> set[str]:
    """Return the objects of a schema: its columns, keys, checks, indexes, functions, triggers, policies and rights.

    Columns and constraints are compared without their order and without the names that Postgres gave them.
    """
    with psycopg.connect(url) as connection:
        connection.execute("SET search_path = ''")
        return {str(line) for (line,) in connection.execute(_CATALOG)}


_CATALOG = """
    SELECT format('column %s.%s %s %s default=%s generated=%s storage=%s', a.attrelid::regclass, a.attname,
                  format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attgenerated,
                  a.attstorage)
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'S', 'v') AND a.attnum > 0
      AND NOT a.attisdropped
    UNION ALL
    SELECT format('constraint %s %s', conrelid::regclass, pg_get_constraintdef(oid)) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace AND contype <> 'n'
    UNION ALL
    SELECT format('index %s %s', indrelid::regclass,
                  regexp_replace(pg_get_indexdef(indexrelid), 'INDEX \\S+ ON', 'INDEX ON'))
    FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE c.relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT format('function %s %s %s %s', oid::regprocedure, md5(pg_get_functiondef(oid)), prosecdef, proacl)
    FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace AND prokind IN ('f', 'p')
      AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.objid = pg_proc.oid AND e.deptype = 'e')
    UNION ALL
    SELECT format('trigger %s', pg_get_triggerdef(oid)) FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL
    SELECT format('policy %s %s %s %s %s %s', tablename, policyname, cmd, roles, qual, with_check) FROM pg_policies
    UNION ALL
    SELECT format('table %s %s %s %s', oid::regclass, relrowsecurity, relforcerowsecurity,
                  (SELECT array_agg(right_to ORDER BY right_to) FROM unnest(relacl::text[]) AS right_to))
    FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S', 'v')
    UNION ALL
    SELECT format('right to %s.%s %s', attrelid::regclass, attname, attacl) FROM pg_attribute
    JOIN pg_class c ON c.oid = attrelid WHERE c.relnamespace = 'public'::regnamespace AND attacl IS NOT NULL
"""


def _versions() -> list[object]:
    """Return every released version; without --full only the first, the last, and one between."""
    quick = {1, 9, newest() - 1}
    return [
        pytest.param(version, marks=[] if version in quick else [pytest.mark.slow]) for version in range(1, newest())
    ]


@pytest.mark.parametrize("version", _versions())
async def test_an_upgrade_from_every_version_gives_the_schema_of_a_new_database_and_keeps_the_data(
    cluster: Cluster, empty_url: str, fresh: set[str], version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "migrations", lambda: SHIPPED[:version])
    migrate(empty_url)
    with psycopg.connect(empty_url) as connection:
        seed(connection, version)
    monkeypatch.setattr(module, "migrations", lambda: SHIPPED)
    assert migrate(empty_url) == SHIPPED[version:]
    assert catalog(empty_url) == fresh
    async with Database(empty_url.replace("esker@", "esker_app@")) as database:
        parts = make_parts(Settings.from_environment({"ESKER_EMBEDDER": "none"}), database)
        # Vectors and keywords of the seeds are not complete.
        wrong = [one for one in await broken(parts) if not re.search("keyword|vector", one)]
        assert wrong == []


def test_a_catalog_differs_when_anything_of_a_schema_does(cluster: Cluster, fresh: set[str]) -> None:
    changes = (
        "ALTER TABLE jobs ALTER COLUMN attempts SET DEFAULT 1",
        "ALTER TABLE jobs ADD COLUMN more int",
        "DROP INDEX jobs_due",
        "ALTER TABLE jobs DROP CONSTRAINT jobs_check",
        "DROP TRIGGER require_keys ON api_keys",
        "DROP POLICY own_pool ON jobs",
        "ALTER TABLE jobs NO FORCE ROW LEVEL SECURITY",
        "REVOKE UPDATE (passages) ON pools FROM esker_app",
        "GRANT EXECUTE ON FUNCTION require_keys TO esker_app",
        "CREATE OR REPLACE FUNCTION current_pool() RETURNS uuid LANGUAGE sql STABLE AS 'SELECT NULL::uuid'",
    )
    with cloned(cluster) as name, psycopg.connect(cluster.url(OWNER, name)) as connection:
        connection.execute("SELECT create_embedding_space('old_3', 3)")
        for change in changes:
            with connection.transaction(force_rollback=True):
                connection.execute(change)
                connection.execute("SET LOCAL search_path = ''")
                assert {str(line) for (line,) in connection.execute(_CATALOG)} != fresh, change


_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def test_a_migration_that_was_killed_half_way_is_continued_by_the_next(
    empty_url: str, fresh: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed with -9 while it waits for a table that another transaction holds, with half of a migration done."""
    monkeypatch.setattr(module, "migrations", lambda: SHIPPED[:8])
    migrate(empty_url)
    monkeypatch.setattr(module, "migrations", lambda: SHIPPED)
    with psycopg.connect(empty_url) as connection:
        seed(connection, 8)
    with psycopg.connect(empty_url) as holder, psycopg.connect(empty_url, autocommit=True) as looking:
        # 0010 changes keys first, and then pools.
        holder.execute("LOCK TABLE pools IN ACCESS EXCLUSIVE MODE")
        command = [sys.executable, "-P", "-m", "esker", "migrate"]
        there = environment(ESKER_DATABASE_URL=empty_url)
        with subprocess.Popen(
            command, cwd=ROOT, env=there, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as one:
            waits = (
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            eventually_here(lambda: looking.execute(waits).fetchone() == (1,))
            one.send_signal(signal.SIGKILL)
            one.wait(timeout=PATIENCE)
        versions = "SELECT max(version) FROM schema_migrations"
        assert looking.execute(versions).fetchone() == (9,)
        holder.rollback()
    assert [migration.version for migration in migrate(empty_url)] == list(range(10, newest() + 1))
    assert catalog(empty_url) == fresh


def test_a_migration_gives_way_to_transactions_that_hold_its_tables(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(empty_url)
    added = Migration(newest() + 1, "added", "ALTER TABLE jobs ADD COLUMN more int;")
    tried = threading.Event()
    monkeypatch.setattr(module, "migrations", lambda: [*SHIPPED, added])
    monkeypatch.setattr(module.time, "sleep", lambda _: tried.set())
    with psycopg.connect(empty_url) as holder:
        holder.execute("LOCK TABLE jobs IN ACCESS SHARE MODE")
        working = threading.Thread(target=migrate, args=(empty_url,))
        working.start()
        assert tried.wait(PATIENCE)
        holder.rollback()
    working.join(PATIENCE)
    assert pending(empty_url) == []


_USE = ("LOCK TABLE pools IN ACCESS SHARE MODE", "SELECT count(*) FROM jobs")
"""A request that holds one table of a migration and then reads the other one."""
_HAS_LOOKED = "SELECT count(*) FROM pg_locks WHERE NOT granted AND clock_timestamp() - waitstart > '200 ms'"
"""Whether a migration waits for longer than it takes to look for a deadlock."""


def test_a_request_that_meets_a_waiting_migration_in_a_deadlock_is_answered(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(empty_url)
    text = "ALTER TABLE jobs ADD COLUMN more int; ALTER TABLE pools ADD COLUMN more int;"
    added = Migration(newest() + 1, "added", text)
    monkeypatch.setattr(module, "migrations", lambda: [*SHIPPED, added])
    with psycopg.connect(empty_url) as request, psycopg.connect(empty_url, autocommit=True) as looking:
        request.execute(_USE[0])
        working = threading.Thread(target=migrate, args=(empty_url,))
        working.start()
        eventually_here(lambda: looking.execute(_HAS_LOOKED).fetchone() == (1,))
        assert request.execute(_USE[1]).fetchone() == (0,)
        request.rollback()
        working.join(PATIENCE)
    assert pending(empty_url) == []


def test_a_request_that_waits_for_a_migration_already_is_answered_after_a_deadlock(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(empty_url)
    text = (
        "ALTER TABLE jobs ADD COLUMN more int; SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock(7);"
        " ALTER TABLE pools ADD COLUMN more int;"
    )
    added = Migration(newest() + 1, "added", text)
    monkeypatch.setattr(module, "migrations", lambda: [*SHIPPED, added])
    found: list[object] = []
    with (
        psycopg.connect(empty_url) as request,
        psycopg.connect(empty_url) as holder,
        psycopg.connect(empty_url, autocommit=True) as looking,
    ):
        request.execute(_USE[0])
        holder.execute("SELECT pg_advisory_xact_lock(7)")
        working = threading.Thread(target=migrate, args=(empty_url,))
        working.start()
        eventually_here(lambda: looking.execute(_WAITING).fetchone() == (1,))
        asking = threading.Thread(target=lambda: found.append(request.execute(_USE[1]).fetchone()))
        asking.start()
        eventually_here(lambda: looking.execute(_WAITING).fetchone() == (2,))
        holder.rollback()
        asking.join(PATIENCE)
        request.rollback()
        working.join(PATIENCE)
    assert found == [(0,)]
    assert pending(empty_url) == []


def test_a_table_that_is_held_too_long_is_explained(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    migrate(empty_url)
    added = Migration(newest() + 1, "added", "SET LOCAL lock_timeout = 1; ALTER TABLE jobs ADD COLUMN more int;")
    monkeypatch.setattr(module, "migrations", lambda: [*SHIPPED, added])
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    with psycopg.connect(empty_url) as holder:
        holder.execute("LOCK TABLE jobs IN ACCESS SHARE MODE")
        with pytest.raises(Unavailable, match="rolled back: other transactions"):
            migrate(empty_url)


def test_an_old_server_goes_on_with_a_newer_schema_unless_it_says_otherwise(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    adds = Migration(newest() + 1, "adds", "ALTER TABLE jobs ADD COLUMN more int;")
    drops = Migration(newest() + 2, "drops", f"-- contract: {newest() + 1:04d}\nALTER TABLE jobs DROP COLUMN attempts;")
    for later, works in (([adds], True), ([adds, drops], False)):
        monkeypatch.setattr(module, "migrations", lambda later=later: [*SHIPPED, *later])
        migrate(empty_url)
        monkeypatch.setattr(module, "migrations", lambda: SHIPPED)
        with pytest.raises(Misconfigured, match="which this version of Esker does not know"):
            migrate(empty_url)
        if works:
            assert pending(empty_url) == []
        else:
            with pytest.raises(Misconfigured, match="which this version of Esker does not know"):
                pending(empty_url)


# Each of these may break a server of the version before, which reads and writes what it knows.
_CONTRACTS = {
    "drops a table, a column, a function or another object": r"\bDROP (?!CONSTRAINT|INDEX|DEFAULT|NOT NULL|POLICY)",
    "renames something": r"\bRENAME\b",
    "changes a type": r"\bALTER (COLUMN )?\w+ (SET DATA )?TYPE\b",
    "requires a value that older servers do not write": (
        r"\bSET NOT NULL\b|\bADD COLUMN \w+ [^,;]*\bNOT NULL\b(?![^,;]*\bDEFAULT\b)"
    ),
    "drops a default that older servers rely on": r"\bDROP DEFAULT\b",
    "adds a rule that older servers may break": r"\bADD (CONSTRAINT \w+ )?(CHECK|UNIQUE|FOREIGN|EXCLUDE|PRIMARY)\b",
    "takes a right away": r"\bREVOKE (?!EXECUTE ON (FUNCTION|PROCEDURE) [\w, \n(\[\])]+ FROM PUBLIC)",
}


@pytest.mark.parametrize("migration", SHIPPED[_BEFORE_THE_RULE:], ids=lambda migration: str(migration.version))
def test_a_migration_only_adds_or_names_the_servers_that_it_needs(migration: Migration) -> None:
    assert contracts(migration.text) == [] or 0 < migration.needs < migration.version


def contracts(text: str) -> list[str]:
    """Return what a migration does that a server of the version before may not survive."""
    statements = re.sub(r"--[^\n]*|'(?:[^']|'')*'", "", text)
    added = set(re.findall(r"\bCREATE TABLE (\w+)", statements))
    own = re.sub(rf"ALTER TABLE (?:{'|'.join(added) or '-'}) [^;]*;", "", statements)
    return [what for what, pattern in _CONTRACTS.items() if re.search(pattern, own)]


@pytest.mark.parametrize(
    "text",
    [
        "DROP TABLE jobs;",
        "ALTER TABLE jobs DROP COLUMN attempts;",
        "DROP FUNCTION backlog(timestamptz);",
        "ALTER TABLE jobs RENAME COLUMN attempts TO tries;",
        "ALTER TABLE jobs ALTER COLUMN attempts TYPE bigint;",
        "ALTER TABLE jobs ADD COLUMN more int NOT NULL;",
        "ALTER TABLE jobs ALTER COLUMN subject SET NOT NULL;",
        "ALTER TABLE jobs ALTER attempts DROP DEFAULT;",
        "ALTER TABLE jobs ADD CHECK (attempts < 9);",
        "REVOKE UPDATE ON jobs FROM esker_app;",
    ],
)
def test_what_an_old_server_may_not_survive_is_recognised(text: str) -> None:
    assert contracts(text)
    assert not contracts("ALTER TABLE jobs ADD COLUMN more int NOT NULL DEFAULT 0, DROP CONSTRAINT jobs_check;")
    assert not contracts("CREATE TABLE new (id int NOT NULL); ALTER TABLE new ADD CHECK (id > 0);")
