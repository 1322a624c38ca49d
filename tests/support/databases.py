"""A database for each test, cloned from a migrated one."""

import asyncio
import itertools
import subprocess
from collections.abc import Generator
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
        connection.execute(copy.format(sql.Identifier(name), sql.Identifier(template)))
        try:
            yield name
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def dump(owner_url: str) -> str:
    """Return a dump of the whole database."""
    done = subprocess.run([BINARIES / "pg_dump", "--dbname", owner_url], capture_output=True, text=True, check=True)
    return done.stdout


def contents(owner_url: str) -> list[str]:
    """Return the lines of a dump but those that are drawn anew for each, so that two can be compared."""
    return [line for line in dump(owner_url).splitlines() if not line.startswith(("\\restrict", "\\unrestrict"))]
