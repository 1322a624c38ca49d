"""Postgres refuses connections or rights: requests, `/readyz` and commands say why, and what to do."""

import logging
from dataclasses import dataclass

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from esker.server.app import make_parts
from esker.server.core.config.settings import Settings
from esker.server.core.errors import Misconfigured, Unavailable
from esker.server.db.database import Database
from esker.server.db.migrate import connected, migrate, newest, pending
from esker.server.db.reachability import Reachability
from esker.server.store import inspection
from esker.server.usecases.authenticate import require_pool
from esker.server.usecases.report_status import readiness
from tests.support.kept_servers import KeptDatabase


@dataclass(frozen=True, slots=True)
class Refusal:
    """A statement of the owner about the database {0}, its opposite, and words of what is then said."""

    fault: str
    over: str
    problem: str
    hint: str


REFUSALS = {
    "no connection left": Refusal(
        "ALTER DATABASE {0} CONNECTION LIMIT 0",
        "ALTER DATABASE {0} CONNECTION LIMIT -1",
        "no connection left",
        "CONNECTION LIMIT",
    ),
    "no right to connect": Refusal(
        "REVOKE CONNECT ON DATABASE {0} FROM public, esker_app",
        "GRANT CONNECT ON DATABASE {0} TO public",
        "may not connect",
        "GRANT CONNECT",
    ),
}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe that gives up on a connection soon."""
    monkeypatch.setattr(inspection, "_PROBE_SECONDS", 0.2)


async def said_by(url: str) -> str:
    """Return what a server on this database says about it."""
    async with Database(url, connections=1, wait_seconds=0.2) as database:
        found = await readiness(make_parts(Settings(embedder="none"), database))
        assert not found.ready
        with pytest.raises(Unavailable) as refused:
            await require_pool(make_parts(Settings(embedder="none"), database), "default")
    assert f"{refused.value} {refused.value.hint}" == found.database
    return found.database


@pytest.mark.parametrize("name", REFUSALS)
async def test_a_connection_that_postgres_refuses_is_explained(name: str, new_database: KeptDatabase) -> None:
    refusal, database = REFUSALS[name], str(conninfo_to_dict(new_database.url)["dbname"])
    await new_database.owner.execute(refusal.fault.format(database).encode())
    told = await said_by(new_database.url)
    assert refusal.problem in told
    assert refusal.hint in told
    with pytest.raises(Unavailable, match=refusal.problem), connected(new_database.url):
        pass
    await new_database.owner.execute(refusal.over.format(database).encode())
    with connected(new_database.url):
        pass


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"dbname": "nowhere"}, "does not exist"),
        ({"user": "nobody"}, "refuses the login"),
        ({"host": "/nowhere"}, "cannot be reached"),
        ({"user": "pg_monitor"}, "refuses the login"),
    ],
)
async def test_a_wrong_address_is_explained(changed: dict[str, str], words: str, database_url: str) -> None:
    assert words in await said_by(make_conninfo(database_url, **changed))


async def test_a_login_that_may_not_become_the_app_role_is_explained(owner_url: str, database_url: str) -> None:
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute("DO $$ BEGIN CREATE ROLE stranger LOGIN; EXCEPTION WHEN duplicate_object THEN END $$")
    assert "may not become esker_app" in await said_by(make_conninfo(database_url, user="stranger"))


async def test_a_right_that_was_taken_away_is_named_and_makes_the_server_unready(new_database: KeptDatabase) -> None:
    await new_database.owner.execute(b"REVOKE INSERT ON memories FROM esker_app")
    async with Database(new_database.url) as database:
        parts = make_parts(Settings(embedder="none"), database)
        assert (await readiness(parts)).ready
        pool = await require_pool(parts, "default")
        with pytest.raises(Misconfigured, match="permission denied for table memories") as refused:
            async with database.tenant(pool.id) as connection:
                await connection.execute("INSERT INTO memories DEFAULT VALUES")
        assert "GRANT" in str(refused.value.hint)
        assert "permission denied for table memories" in (await readiness(parts)).database


async def test_a_schema_for_a_newer_version_makes_the_server_unready(new_database: KeptDatabase) -> None:
    await new_database.owner.execute(
        b"INSERT INTO schema_migrations (version, name, checksum, needs) VALUES (9999, 'later', '', %d)"
        % (newest() + 1)
    )
    async with Database(new_database.url) as database:
        found = await readiness(make_parts(Settings(embedder="none"), database))
    assert not found.ready
    assert f"migration {newest() + 1:04d}" in found.database


def test_a_login_that_may_not_migrate_is_told_so(database_url: str) -> None:
    with pytest.raises(Misconfigured, match="may not change the schema") as refused:
        migrate(database_url)
    assert "login that owns the tables" in str(refused.value.hint)


async def test_a_login_that_may_not_use_the_schema_is_not_told_to_migrate(new_database: KeptDatabase) -> None:
    await new_database.owner.execute(b"REVOKE USAGE ON SCHEMA public FROM public, esker_app")
    with pytest.raises(Misconfigured, match="may not use any schema") as refused:
        pending(new_database.url)
    assert "GRANT USAGE" in str(refused.value.hint)


async def test_a_database_that_takes_no_writes_is_not_migrated(new_database: KeptDatabase) -> None:
    read_only = make_conninfo(new_database.url, user="esker", options="-c default_transaction_read_only=on")
    with pytest.raises(Unavailable, match="takes no writes"):
        migrate(read_only)


def test_an_outage_is_logged_once_for_each_reason(log_records: list[logging.LogRecord]) -> None:
    reachability = Reachability()
    full = psycopg.OperationalError("connection failed: FATAL:  sorry, too many clients already")
    for error in (full, full, psycopg.OperationalError("connection refused")):
        reachability.failed(error)
    for _ in range(2):
        reachability.succeeded()
    assert [record.getMessage() for record in log_records] == [
        "no connection to the database can be opened: sorry, too many clients already",
        "no connection to the database can be opened: connection refused",
        "connections to the database can be opened again",
    ]
