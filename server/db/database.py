"""The way to the database: `async with database.tenant(pool_id) as connection`.

There is no other way to a connection. `tenant` opens a transaction that sees and writes one pool only; Postgres
enforces that by row-level security under a role that owns nothing. Questions about all pools (whose key is this? which
pools have jobs?) are single statements that return ids and counts, through `ask`.
"""

import logging
import time
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from copy import copy
from pathlib import Path
from typing import Any, LiteralString, Self

import psycopg
from pgvector.psycopg.halfvec import register_halfvec_info
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import ReadOnlySqlTransaction
from psycopg.rows import DictRow, TupleRow, dict_row
from psycopg.types import TypeInfo
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from esker.server.core.clock import SharedClock
from esker.server.core.config.settings import Settings
from esker.server.core.errors import Misconfigured, Unavailable
from esker.server.db.connection import ANSWER_SECONDS, KEEPALIVE, ConnectionPool, LimitedConnection
from esker.server.db.driver_errors import esker_error, first_line, is_missing_right
from esker.server.db.pipeline import enter, outside_pools, transaction
from esker.server.db.reachability import Reachability
from esker.server.db.refusals import Refusals
from esker.server.db.replica import FOLLOWER_SECONDS, Replica
from esker.server.db.statements import Statements

log = logging.getLogger(__name__)

Connection = LimitedConnection

# The most seconds that a request waits for a connection, and that a new connection is retried. Then the next request
# starts over with short pauses: pauses grow with each retry, and long ones would delay the recovery.
_WAIT_SECONDS = 5.0
# Seconds of idleness after which a connection is checked before it is used again, and seconds for its answer.
_IDLE_SECONDS = 5.0
_CHECK_SECONDS = 1.0
# A statement or an idle transaction that exceeds these limits is a bug or an attack. Locks are held for seconds; a
# longer wait would keep a connection from others. Iterative scan continues a vector search until it has enough rows;
# docs/decisions/approximate-search.md has the figures behind ef_search.
_OPTIONS = (
    "-c statement_timeout=30s -c lock_timeout=10s -c idle_in_transaction_session_timeout=60s -c timezone=UTC"
    " -c hnsw.iterative_scan=relaxed_order -c hnsw.ef_search=200"
)

_ALWAYS: dict[str, Any] = {**KEEPALIVE, "autocommit": True}
_OWN: dict[str, Any] = {"options": _OPTIONS}
_SHARED: dict[str, Any] = {"prepare_threshold": None}

_SQL = Statements(Path(__file__).parent / "sql/tenancy.sql")


class Database:
    """A pool of connections as the app role. Use it as an async context manager.

    `clock` follows the clock of the database.
    """

    def __init__(
        self,
        url: str,
        *,
        direct_url: str | None = None,
        replica_url: str | None = None,
        connections: int = 10,
        answer_seconds: float = ANSWER_SECONDS,
        wait_seconds: float = _WAIT_SECONDS,
    ) -> None:
        """`url` is a libpq connection string; its login must be the app role or allowed to become it.

        `direct_url`: the same database without the pooler that `url` leads through, which works by transaction: no
        setting, role or prepared statement may then outlive a transaction. `replica_url`: a streaming replica of it.
        `answer_seconds`: how long to wait for the answer to a statement; `wait_seconds`: for a connection. Raises
        Misconfigured if a string is not a connection string.
        """
        for address in (url, direct_url or url):
            check_url(address)
        self.replica: Replica[Database] | None = None
        if replica_url:
            follower = Database(replica_url, connections=connections, wait_seconds=FOLLOWER_SECONDS)
            self.replica = Replica(follower)
        self.url = url
        self.direct_url = direct_url or url
        self._is_shared = direct_url is not None
        self._answer_seconds = answer_seconds
        self.project: str | None = None
        self.clock = SharedClock()
        self.refusals = Refusals()
        self._reachability = Reachability()
        self._in_use = 0
        self._pool = ConnectionPool(
            url,
            connection_class=LimitedConnection,
            check=self._check,
            min_size=1,
            max_size=connections,
            open=False,
            timeout=wait_seconds,
            reconnect_timeout=_WAIT_SECONDS,
            configure=self._prepare,
            kwargs={
                **_ALWAYS,
                **(_SHARED if self._is_shared else _OWN),
                "on_failure": self._reachability.failed,
            },
        )

    @classmethod
    def configured(cls, settings: Settings, url: str, *, connections: int, with_replica: bool = False) -> Self:
        """Return the database at `url`, which the settings name or which is embedded. Raises Misconfigured."""
        direct, replica = settings.database_direct_url, settings.database_replica_url
        return cls(
            url,
            direct_url=direct.get_secret_value() if direct else None,
            replica_url=replica.get_secret_value() if replica and with_replica else None,
            connections=connections,
        )

    async def __aenter__(self) -> Self:
        await self._pool.open()
        if self.replica:
            await self.replica.follower.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.replica:
            await self.replica.follower.__aexit__()
        await self._pool.close()

    @property
    def connections(self) -> dict[str, float]:
        """The pool of connections: `open`, `idle` and `most` connections, and requests that are `waiting` for one.

        Sums since the start are `waited_seconds`, and `failed`: requests that got none in time.
        """
        found = self._pool.get_stats()
        return {
            "open": found["pool_size"],
            "idle": found["pool_available"],
            "most": found["pool_max"],
            "waiting": found["requests_waiting"],
            "waited_seconds": found.get("requests_wait_ms", 0) / 1_000,
            "failed": found.get("requests_errors", 0),
        }

    def of_project(self, project: str) -> "Database":
        """Return a view with the same connections, whose transactions see and write only this project of a pool.

        They also see what belongs to no project.
        """
        view = copy(self)
        view.project = project
        return view

    @asynccontextmanager
    async def tenant(self, pool_id: str) -> AsyncGenerator[Connection]:
        """Open a transaction inside one pool; it commits at the end of the block and rolls back on an error.

        Raises Unavailable when the database cannot be reached.
        """
        async with self._connection() as connection, connection.transaction():
            await enter(connection, pool_id, self.project)
            yield connection

    @asynccontextmanager
    async def moment(self, pool_id: str) -> AsyncGenerator[Connection]:
        """Open a read-only transaction inside one pool whose statements all see the same snapshot.

        Rows that one statement finds are still there for the next. Raises Unavailable.
        """
        async with self._connection() as connection, connection.transaction():
            await connection.execute(_SQL["see_one_moment"])
            await enter(connection, pool_id, self.project)
            yield connection

    @asynccontextmanager
    async def moment_apart(self, pool_id: str) -> AsyncGenerator[Connection]:
        """Open a transaction like `moment` on a connection that is opened for it, and closed after it.

        For readers whose pace is a client's: they must not hold the connections of others, nor those of a pooler.
        Raises Unavailable.
        """
        with self._as_esker_errors():
            async with await LimitedConnection.connect(self.direct_url, **_ALWAYS, **_OWN) as connection:
                await self._make_ready(connection)
                async with connection.transaction():
                    await connection.execute(_SQL["see_one_moment"])
                    await enter(connection, pool_id, self.project)
                    yield connection

    @asynccontextmanager
    async def tenant_pipeline(self, pool_id: str) -> AsyncGenerator[Connection]:
        """Open a transaction like `tenant`, in pipeline mode (`server/db/pipeline.py`). Raises Unavailable."""
        async with self._connection() as connection, transaction(connection, pool_id, self.project, read_only=False):
            yield connection

    @asynccontextmanager
    async def moment_pipeline(self, pool_id: str) -> AsyncGenerator[Connection]:
        """Open a transaction like `moment`, in pipeline mode. Raises Unavailable."""
        async with self._connection() as connection, transaction(connection, pool_id, self.project, read_only=True):
            yield connection

    @asynccontextmanager
    async def moment_since(self, pool_id: str, position: str | None) -> AsyncGenerator[Connection]:
        """Open a transaction like `moment_pipeline`, on the replica if there is one that shows `position` soon.

        `position` is from the log of this database (`server/db/replica.py`). Raises Unavailable.
        """
        source: Database = self
        if self.replica and position and await self.replica.reaches(position):
            follower = self.replica.follower
            source = follower.of_project(self.project) if self.project is not None else follower
        async with source.moment_pipeline(pool_id) as connection:
            yield connection

    @asynccontextmanager
    async def snapshot(self, pool_id: str) -> AsyncGenerator["Snapshot"]:
        """Open a snapshot of a pool as a database of its own, for use cases that open transactions themselves.

        Raises Unavailable.
        """
        async with self.moment(pool_id) as connection:
            yield Snapshot(self.url, pool_id, connection)

    async def ask(
        self, statement: LiteralString, values: Mapping[str, Any] | None = None, *, wait_seconds: float | None = None
    ) -> list[DictRow]:
        """Run one statement that belongs to no pool and return its rows. Raises Unavailable.

        `wait_seconds`: how long to wait for a connection, and then for an answer, if not as long as usual.
        """
        async with self._connection(wait_seconds) as connection, connection.cursor(row_factory=dict_row) as cursor:
            with connection.waiting(min(wait_seconds or self._answer_seconds, self._answer_seconds)):
                async with outside_pools(connection):
                    await cursor.execute(statement, values)
                return await cursor.fetchall() if cursor.description else []

    async def reconnect(self) -> None:
        """Open every connection anew before its next use: these lead to a former primary, and would do so for ever."""
        await self._pool.drain()

    async def _prepare(self, connection: Connection) -> None:
        connection.is_shared = self._is_shared
        try:
            await self._make_ready(connection)
        except psycopg.Error as error:
            self._reachability.failed(error)
            raise
        self._reachability.succeeded()

    async def _make_ready(self, connection: Connection) -> None:
        connection.answer_seconds = self._answer_seconds
        if not connection.is_shared:
            await connection.execute(_SQL["become_app_role"])
        await read_clock(connection, self.clock)
        await _know_vectors(connection)

    async def _check(self, connection: Connection) -> None:
        """Raise an error for a connection that was idle or has ended, and does not answer; the pool opens another."""
        if time.monotonic() - connection.used_at < _IDLE_SECONDS and not connection.has_input:
            return
        try:
            with connection.waiting(min(_CHECK_SECONDS, self._answer_seconds)):
                await connection.execute("")
        except psycopg.Error:
            # The other connections of the pool are probably dead, too.
            await self._pool.drain()
            raise

    @asynccontextmanager
    async def _connection(self, wait_seconds: float | None = None) -> AsyncGenerator[Connection]:
        with self._as_esker_errors():
            try:
                async with self._pool.connection(wait_seconds) as connection:
                    with self._counted():
                        await _know_vectors(connection)
                        yield connection
            except ReadOnlySqlTransaction:
                await self.reconnect()
                raise

    @contextmanager
    def _counted(self) -> Generator[None]:
        """Count a connection that is in use during the block."""
        self._in_use += 1
        try:
            yield
        finally:
            self._in_use -= 1

    @contextmanager
    def _as_esker_errors(self) -> Generator[None]:
        """Turn errors of the driver into those of Esker, for which clients wait or migrate."""
        try:
            yield
        except (PoolTimeout, PoolClosed, TooManyRequests) as error:
            if self._in_use >= self._pool.max_size:
                raise Unavailable(
                    "All connections to the database are in use.",
                    hint="Try again. If it goes on, raise ESKER_DATABASE_CONNECTIONS, or see pg_stat_activity for"
                    " what keeps them.",
                ) from error
            raise self._reachability.error() from error
        except psycopg.Error as error:
            if words := self.refusals.note(error):
                raise Unavailable(f"{words}.") from error
            if self.project is None and is_missing_right(error):
                self.refusals.note_missing_right(first_line(error))
            if known := esker_error(error):
                raise known from error
            error.args = (first_line(error),)  # it may be logged
            raise


class Snapshot(Database):
    """A snapshot of one pool: every `tenant` and `moment` uses the one read-only transaction that is open.

    `Database.snapshot` creates it. It is not a context manager and has no connections of its own.
    """

    def __init__(self, url: str, pool_id: str, connection: Connection) -> None:
        super().__init__(url)
        self._pool_id = pool_id
        self._held = connection

    @asynccontextmanager
    async def tenant(self, pool_id: str) -> AsyncGenerator[Connection]:
        """Hand out the connection. Raises ValueError for another pool."""
        if pool_id != self._pool_id:
            raise ValueError("a snapshot has one pool")
        yield self._held

    @asynccontextmanager
    async def moment(self, pool_id: str) -> AsyncGenerator[Connection]:
        """Hand out the connection. Raises ValueError for another pool."""
        async with self.tenant(pool_id) as connection:
            yield connection

    @asynccontextmanager
    async def moment_apart(self, pool_id: str) -> AsyncGenerator[Connection]:
        """Hand out the connection. Raises ValueError for another pool."""
        async with self.tenant(pool_id) as connection:
            yield connection

    @asynccontextmanager
    async def moment_pipeline(self, pool_id: str) -> AsyncGenerator[Connection]:
        """Hand out the connection in pipeline mode. Raises ValueError for another pool."""
        async with self.tenant(pool_id) as connection, connection.pipeline():
            yield connection

    @asynccontextmanager
    async def _connection(self, wait_seconds: float | None = None) -> AsyncGenerator[Connection]:
        yield self._held


def check_url(url: str) -> None:
    """Raise Misconfigured unless `url` is a connection string."""
    try:
        conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        # The reason would repeat the string, which may hold a password.
        raise Misconfigured(
            "ESKER_DATABASE_URL is not a connection string.", hint="Use the form postgresql://user@host:5432/database."
        ) from error


async def read_clock(connection: AsyncConnection[TupleRow], clock: SharedClock) -> None:
    """Set a clock by that of the database."""
    asked = time.monotonic()
    row = await (await connection.execute(_SQL["read_clock"])).fetchone()
    if row:
        clock.read(row[0], asked, time.monotonic())


async def _know_vectors(connection: AsyncConnection[Any]) -> None:
    """Let the driver send and read vectors in binary, unless it does already or the database is not migrated yet."""
    if connection.adapters.types.get("halfvec") is None and (info := await TypeInfo.fetch(connection, "halfvec")):
        register_halfvec_info(connection, info)
