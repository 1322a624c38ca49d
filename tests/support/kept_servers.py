"""Servers that the tests of one process share, each with a database of its own that is emptied for every test."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import LiteralString

import psycopg

from esker.server.app import make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from esker.server.db.embedded import OWNER, Cluster
from tests.support.databases import cloned
from tests.support.serving import serving

_LARGEST_GROWTH = 16 * 1024**2
"""Bytes that deleted rows may occupy; a database that has grown more is replaced, since nothing vacuums it."""

# Everything belongs to a pool, apart from vectors; and a database with tables for vectors is replaced.
_STATE: LiteralString = """
    SELECT (SELECT count(*) FROM jobs WHERE state = 'running'),
           (SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'p')),
           pg_database_size(current_database())
"""


@dataclass(slots=True)
class KeptServer:
    """A running server; `database_url` is its database as the app role sees it."""

    url: str
    database_url: str
    stack: AsyncExitStack
    owner: psycopg.Connection
    tables: int
    size: int

    def emptied(self) -> bool:
        """Leave nothing in the database but an empty default pool; return whether the next test can have the server.

        It cannot if the server still runs a job, or if its database has other tables or too many deleted rows.
        """
        with self.owner.transaction():
            jobs, tables, size = _state(self.owner)
            self.owner.execute("DELETE FROM pools")
            self.owner.execute("INSERT INTO pools (name) VALUES ('default')")
        return not jobs and tables == self.tables and size < self.size + _LARGEST_GROWTH


class KeptServers:
    """The servers of a process, by their settings."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._running: dict[tuple[tuple[str, str], ...], KeptServer] = {}

    async def get(self, environment: Mapping[str, str]) -> KeptServer:
        """Return a server with these settings, whose database is empty."""
        key = tuple(sorted(environment.items()))
        server = self._running.get(key)
        if server and not server.emptied():
            await self._running.pop(key).stack.aclose()
            server = None
        if not server:
            server = self._running[key] = await self._start(environment)
        return server

    async def close(self) -> None:
        """Stop all servers."""
        for server in self._running.values():
            await server.stack.aclose()

    async def _start(self, environment: Mapping[str, str]) -> KeptServer:
        stack = AsyncExitStack()
        name = stack.enter_context(cloned(self._cluster))
        database_url = self._cluster.url(database=name)
        owner = stack.enter_context(psycopg.connect(self._cluster.url(OWNER, name), autocommit=True))
        parts = make_parts(Settings.from_environment(environment), Database(database_url), system_clock)
        url = await stack.enter_async_context(serving(parts))
        _, tables, size = _state(owner)
        return KeptServer(url, database_url, stack, owner, tables, size)


def _state(owner: psycopg.Connection) -> tuple[int, int, int]:
    row = owner.execute(_STATE).fetchone()
    assert row is not None
    return row
