"""Databases and servers that the tests of one process share; the database is emptied before each test."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.errors import DeadlockDetected, LockNotAvailable

from esker.server.app import make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from esker.server.db.embedded import OWNER, Cluster
from tests.support.databases import cloned
from tests.support.serving import serving
from tests.support.waiting import PATIENCE

_LARGEST_GROWTH = 8 * 1024**2
"""Bytes that deleted rows may occupy; a database that has grown more is replaced, since nothing vacuums it."""

# The name of connections that live as long as the database.
_KEPT = "kept"
# The relations of a database, the planner's knowledge of their sizes, and the bytes on disk.
_SHAPE: LiteralString = """
    SELECT count(*), sum(reltuples), pg_database_size(current_database()) FROM pg_class
"""
_VECTORS: LiteralString = """
    SELECT relname FROM pg_class WHERE relname ^@ 'embeddings_' AND relkind = 'r'
"""
_END_OTHERS: LiteralString = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name <> %s
"""


@dataclass(slots=True)
class KeptDatabase:
    """A database; `url` is its address as the app role sees it, and `open` is it with connections."""

    url: str
    open: Database
    stack: AsyncExitStack
    owner: psycopg.AsyncConnection
    shape: tuple[int, float, int]

    @classmethod
    async def made(cls, cluster: Cluster) -> "KeptDatabase":
        """Copy the migrated database."""
        stack = AsyncExitStack()
        name = stack.enter_context(cloned(cluster))
        url, owner_url = cluster.url(database=name), cluster.url(OWNER, name)
        connecting = await psycopg.AsyncConnection.connect(owner_url, autocommit=True, application_name=_KEPT)
        owner = await stack.enter_async_context(connecting)
        await owner.execute("SET lock_timeout = '10s'")
        named = make_conninfo(url, application_name=_KEPT)
        opened = await stack.enter_async_context(Database(named, wait_seconds=PATIENCE))
        return cls(url, opened, stack, owner, await _shape(owner))

    async def emptied(self) -> bool:
        """Leave nothing in the database but an empty default pool; return whether the next test can have it.

        It cannot if a job still runs, if there are other relations or too many deleted rows, or if it is locked.
        """
        try:
            # Everything belongs to a pool, apart from vectors.
            async with self.owner.transaction():
                jobs = await self.owner.execute("DELETE FROM jobs RETURNING state")
                running = [state for (state,) in await jobs.fetchall() if state == "running"]
                await self.owner.execute("DELETE FROM pools")
                await self.owner.execute("INSERT INTO pools (name) VALUES ('default')")
                for (vectors,) in await (await self.owner.execute(_VECTORS)).fetchall():
                    await self.owner.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(vectors)))
        except (DeadlockDetected, LockNotAvailable):  # something that was begun earlier still writes
            return False
        relations, rows, size = await _shape(self.owner)
        return not running and (relations, rows) == self.shape[:2] and size < self.shape[2] + _LARGEST_GROWTH

    async def reopened(self) -> None:
        """Open it again if a test has closed it, with connections that work."""
        if self.open._pool.closed:
            self.open = await self.stack.enter_async_context(Database(self.open.url, wait_seconds=PATIENCE))
        await self.open._pool.check()

    async def end_others(self) -> None:
        """End the connections that a test has left open."""
        await self.owner.execute(_END_OTHERS, [_KEPT])


@dataclass(slots=True)
class KeptServer:
    """A running server and its database."""

    url: str
    database: KeptDatabase


class KeptServers:
    """The servers of a process by their settings, and its database without a server."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._running: dict[tuple[tuple[str, str], ...], KeptServer] = {}
        self._alone: KeptDatabase | None = None

    async def get(self, environment: Mapping[str, str]) -> KeptServer:
        """Return a server with these settings, whose database is empty."""
        key = tuple(sorted(environment.items()))
        server = self._running.get(key)
        if server and not await server.database.emptied():
            await self._running.pop(key).database.stack.aclose()
            server = None
        if not server:
            server = self._running[key] = await self._start(environment)
        await server.database.reopened()
        return server

    async def alone(self) -> KeptDatabase:
        """Return an empty database without a server."""
        if self._alone:
            await self._alone.reopened()
            await self._alone.end_others()
            if not await self._alone.emptied():
                await self._alone.stack.aclose()
                self._alone = None
        if not self._alone:
            self._alone = await KeptDatabase.made(self._cluster)
        return self._alone

    async def close(self) -> None:
        """Stop all servers and remove all databases."""
        for database in [*(server.database for server in self._running.values()), *filter(None, [self._alone])]:
            await database.stack.aclose()

    async def _start(self, environment: Mapping[str, str]) -> KeptServer:
        database = await KeptDatabase.made(self._cluster)
        served = Database(database.url, wait_seconds=PATIENCE)
        parts = make_parts(Settings.from_environment(environment), served, system_clock)
        url = await database.stack.enter_async_context(serving(parts))
        return KeptServer(url, database)


async def _shape(owner: psycopg.AsyncConnection) -> tuple[int, float, int]:
    row = await (await owner.execute(_SHAPE)).fetchone()
    assert row is not None
    return row
