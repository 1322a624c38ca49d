"""Servers that the tests of one process share, each with a database of its own that is emptied for every test."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import LiteralString

import psycopg
from psycopg.errors import DeadlockDetected

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
_SHAPE: LiteralString = """
    SELECT (SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'p')), pg_database_size(current_database())
"""


@dataclass(slots=True)
class KeptServer:
    """A running server; `database_url` is its database as the app role sees it."""

    url: str
    database_url: str
    stack: AsyncExitStack
    owner: psycopg.AsyncConnection
    tables: int
    size: int

    async def emptied(self) -> bool:
        """Leave nothing in the database but an empty default pool; return whether the next test can have the server.

        It cannot if the server still runs a job, or if its database has other tables or too many deleted rows.
        """
        try:
            async with self.owner.transaction():
                jobs = await self.owner.execute("DELETE FROM jobs RETURNING state")
                running = [state for (state,) in await jobs.fetchall() if state == "running"]
                await self.owner.execute("DELETE FROM pools")
                await self.owner.execute("INSERT INTO pools (name) VALUES ('default')")
        except DeadlockDetected:  # a job committed meanwhile
            return False
        tables, size = await _shape(self.owner)
        return not running and tables == self.tables and size < self.size + _LARGEST_GROWTH


class KeptServers:
    """The servers of a process, by their settings."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._running: dict[tuple[tuple[str, str], ...], KeptServer] = {}

    async def get(self, environment: Mapping[str, str]) -> KeptServer:
        """Return a server with these settings, whose database is empty."""
        key = tuple(sorted(environment.items()))
        server = self._running.get(key)
        if server and not await server.emptied():
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
        connecting = await psycopg.AsyncConnection.connect(self._cluster.url(OWNER, name), autocommit=True)
        owner = await stack.enter_async_context(connecting)
        parts = make_parts(Settings.from_environment(environment), Database(database_url), system_clock)
        url = await stack.enter_async_context(serving(parts))
        return KeptServer(url, database_url, stack, owner, *await _shape(owner))


async def _shape(owner: psycopg.AsyncConnection) -> tuple[int, int]:
    """Return the number of tables and the size in bytes of a database."""
    row = await (await owner.execute(_SHAPE)).fetchone()
    assert row is not None
    return row
