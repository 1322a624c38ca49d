"""A connection that waits for Postgres for a limited time, also if the network between them has gone silent.

Postgres limits its own statements. If a firewall, a failover or a sleeping machine swallows the packets of a connection
that is open, neither end hears of it, and without a limit on this side a request would wait for ever.
"""

import asyncio
import logging
import os
import select
import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, Self, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncCursor, AsyncServerCursor
from psycopg.pq import PipelineStatus
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolTimeout

log = logging.getLogger(__name__)

_T = TypeVar("_T")

ANSWER_SECONDS = 40.0
"""The most seconds for one answer; more than the statement timeout, so Postgres normally ends a statement first."""
KEEPALIVE: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""Parameters with which the operating system notices a dead peer, in seconds; the last is in milliseconds."""


class _EndingCursor(AsyncServerCursor[TupleRow]):
    """A cursor that is closed also if Postgres could not be told: it ends with its transaction."""

    async def close(self) -> None:
        try:
            await super().close()
        finally:
            await AsyncCursor.close(self)


class LimitedConnection(AsyncConnection[TupleRow]):
    """A connection that is shut down when an answer takes more than `answer_seconds`; the waiter gets an error.

    `used_at` is when the last answer came, on the monotonic clock. `is_shared`: a pooler gives what is behind it to
    other clients after each transaction.
    """

    answer_seconds: float = ANSWER_SECONDS
    used_at: float = 0.0
    is_shared: bool = False
    _timer: asyncio.TimerHandle | None = None

    def __init__(self, *parameters: Any, **more: Any) -> None:
        super().__init__(*parameters, **more)
        self.server_cursor_factory = _EndingCursor

    @classmethod
    async def connect(cls, conninfo: str = "", **options: Any) -> Self:
        """Connect as the driver does.

        The option `on_failure` is called with the error of a failed try, which a pool of connections keeps to itself.
        """
        on_failure: Callable[[psycopg.Error], None] | None = options.pop("on_failure", None)
        try:
            return await super().connect(conninfo, **options)
        except psycopg.Error as error:
            if on_failure:
                on_failure(error)
            raise

    async def wait(self, gen: Generator[Any, Any, _T], *options: Any, **more: Any) -> _T:
        """Wait for an answer, as the driver does, but not for ever."""
        self._limit_wait()
        try:
            return await super().wait(gen, *options, **more)
        finally:
            if self._timer:
                self._timer.cancel()
            self.used_at = time.monotonic()

    @property
    def is_in_pipeline(self) -> bool:
        """Whether statements go into a pipeline, where one that nobody fetches from has no rows.

        A task that is cancelled while the driver enters or leaves the pipeline leaves the connection in it.
        """
        return self._pipeline is not None or self.pgconn.pipeline_status != PipelineStatus.OFF

    @property
    def has_input(self) -> bool:
        """Whether data can be read; without a request, it is mostly the end of the connection."""
        watched = select.poll()
        watched.register(self.pgconn.socket, select.POLLIN)
        return bool(watched.poll(0))

    @contextmanager
    def waiting(self, seconds: float) -> Generator[None]:
        """Limit the wait for each answer to `seconds` while the block runs."""
        usual, self.answer_seconds = self.answer_seconds, seconds
        try:
            yield
        finally:
            self.answer_seconds = usual

    def _limit_wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self.answer_seconds, self._hang_up)

    def _hang_up(self) -> None:
        if self.has_input:
            # The answer is there, and this process was too busy to read it.
            self._limit_wait()
            return
        log.warning("Postgres gave no answer within %g s; the connection is given up", self.answer_seconds)
        # Cancelling the task would not do: the driver would ask the server to cancel, and wait for that.
        with suppress(OSError), socket.socket(fileno=os.dup(self.pgconn.socket)) as own:
            own.shutdown(socket.SHUT_RDWR)


class ConnectionPool(AsyncConnectionPool[LimitedConnection]):
    """A pool from which no cancellation and no connection is lost.

    The driver's own waits for a connection by `asyncio.wait_for`, which before Python 3.12 swallows a cancellation that
    comes as its result does: the task goes on. And it waits for its lock when a connection comes back: if the task is
    cancelled there, that connection counts as open and is used by nobody.
    """

    def __init__(self, *parameters: Any, **options: Any) -> None:
        super().__init__(*parameters, **options)
        self._returning: set[asyncio.Task[None]] = set()

    async def getconn(self, timeout: float | None = None) -> LimitedConnection:  # noqa: ASYNC109 - the driver's own
        """Return a connection that nobody else uses. Raises PoolTimeout."""
        task = asyncio.current_task()
        before = task.cancelling() if task else 0
        try:
            connection = await super().getconn(timeout)
        except PoolTimeout:
            if task and task.cancelling() > before:
                raise asyncio.CancelledError from None
            raise
        if task and task.cancelling() > before:
            await self.putconn(connection)
            raise asyncio.CancelledError
        return connection

    async def putconn(self, conn: LimitedConnection) -> None:
        """Return a connection; one that was left in a pipeline is closed, and another one opened for it."""
        if not conn.closed and conn.is_in_pipeline:
            conn.pgconn.finish()
        task = asyncio.create_task(super().putconn(conn))
        self._returning.add(task)
        task.add_done_callback(self._returning.discard)
        await asyncio.shield(task)
