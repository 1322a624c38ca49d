"""A database for each test, cloned from a migrated one."""

import asyncio
import itertools
import subprocess
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import LiteralString

import psycopg
from psycopg import sql

from esker.server.db.database import Database
from esker.server.db.embedded import DATABASE, OWNER, Cluster
from esker.server.db.programs import BINARIES
from tests.support.waiting import eventually

_numbers = itertools.count()

# Whether any connection waits for a lock in this database.
_WAITING: LiteralString = """
    SELECT count(*) > 0 AS waiting FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
"""

# Seconds after which a statement that makes or drops a database may be waiting for a connection.
_LONG_SECONDS = 1.0
# Ends the connections whose clients do not read what they are sent.
_END_UNREAD: LiteralString = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'ClientWrite'"


async def until_one_waits(database: Database, working: asyncio.Task[object] | None = None) -> None:
    """Return once a connection waits for a lock, which `working` must do before it is done."""

    async def waits() -> bool:
        assert not (working and working.done())
        return bool((await database.ask(_WAITING))[0]["waiting"])

    await eventually(waits)


@contextmanager
def cloned(cluster: Cluster, template: str = DATABASE) -> Generator[str]:
    """Yield the name of a copy of `template`, which goes at the end."""
    name = f"test_{next(_numbers)}"
    with psycopg.connect(cluster.url(OWNER, "postgres"), autocommit=True) as connection:
        # Copying the files is quicker than writing every page to the log first.
        copy = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
        _carry_out(connection, copy.format(sql.Identifier(name), sql.Identifier(template)))
        try:
            yield name
        finally:
            _carry_out(connection, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _carry_out(connection: psycopg.Connection, statement: sql.Composed) -> None:
    """Carry out a statement for which Postgres waits until every connection of the cluster takes notice.

    Meanwhile no server in this thread works. A connection whose long answer such a server does not read takes no
    notice, so it is ended.
    """
    with ThreadPoolExecutor(1) as thread:
        working = thread.submit(connection.execute, statement)
        while wait([working], _LONG_SECONDS).not_done:
            with psycopg.connect(connection.info.dsn, autocommit=True) as looking:
                looking.execute(_END_UNREAD)
        working.result()


def dump(owner_url: str) -> str:
    """Return a dump of the whole database."""
    done = subprocess.run([BINARIES / "pg_dump", "--dbname", owner_url], capture_output=True, text=True, check=True)
    return done.stdout


def contents(owner_url: str) -> list[str]:
    """Return the lines of a dump but those that are drawn anew for each, so that two can be compared."""
    return [line for line in dump(owner_url).splitlines() if not line.startswith(("\\restrict", "\\unrestrict"))]
