"""Statements that share round trips: each is sent at once, and its answer is read when it is needed."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, LiteralString, TypeVar

from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus
from psycopg.rows import AsyncRowFactory, TupleRow, tuple_row

from esker.server.db.connection import LimitedConnection
from esker.server.db.statements import Statements

_SQL = Statements(Path(__file__).parent / "sql/tenancy.sql")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Query(Generic[T]):
    """A statement with its parameters, and the function that makes its answer of the rows.

    `binary`: the rows come in binary, which is faster if there are many numbers and times.
    """

    statement: LiteralString
    values: Mapping[str, Any]
    read: Callable[[list[Any]], T]
    row_factory: AsyncRowFactory[Any] = field(default=tuple_row)
    binary: bool = False


class Answer(Generic[T]):
    """The answer to a query that was sent: `await` it, in the block of the pipeline or after it, also repeatedly.

    In the block, awaiting one answer sends everything that waits, and reads all answers: one round trip. After the
    block it costs none, since the end of the transaction has read them.
    """

    def __init__(self, rows: Callable[[], Awaitable[list[Any]]], read: Callable[[list[Any]], T]) -> None:
        self._fetch = rows
        self._read = read
        self._rows: list[Any] | None = None

    def __await__(self) -> Generator[Any, Any, T]:
        """Return the answer."""
        return self._answer().__await__()

    async def _answer(self) -> T:
        if self._rows is None:
            self._rows = await self._fetch()
        return self._read(self._rows)


async def send(connection: AsyncConnection[TupleRow], query: Query[T]) -> Answer[T]:
    """Send a query; awaiting the result returns its answer."""
    cursor = connection.cursor(row_factory=query.row_factory, binary=query.binary)
    await cursor.execute(query.statement, query.values)
    return Answer(cursor.fetchall, query.read)


def known(value: T) -> Answer[T]:
    """Return an answer that needs no statement."""

    async def no_rows() -> list[Any]:
        return []

    return Answer(no_rows, lambda _: value)


async def fetch(connection: AsyncConnection[TupleRow], query: Query[T]) -> T:
    """Send a query and return its answer."""
    return await (await send(connection, query))


async def enter(connection: LimitedConnection, pool_id: str, project: str | None) -> None:
    """Limit the transaction to the rows of one pool and, unless it is None, of one project."""
    if connection.is_shared:
        await connection.execute(_SQL["limit"])
    if project is None:
        await connection.execute(_SQL["enter_pool"], {"pool": pool_id})
    else:
        await connection.execute(_SQL["enter_project"], {"pool": pool_id, "project": project})


@asynccontextmanager
async def outside_pools(connection: LimitedConnection) -> AsyncGenerator[None]:
    """Run the block with the rights and limits of the app, in no pool; on a shared connection in a transaction.

    The answer to its last statement can be read after it.
    """
    if not connection.is_shared:
        yield
        return
    async with connection.pipeline(), connection.transaction():
        await connection.execute(_SQL["limit"])
        await connection.execute(_SQL["act_as_app"])
        yield


@asynccontextmanager
async def transaction(
    connection: LimitedConnection, pool_id: str, project: str | None, *, read_only: bool
) -> AsyncGenerator[LimitedConnection]:
    """Run the block in a transaction of one pool, or of one project, in pipeline mode.

    An error in it rolls the transaction back.

    `read_only`: all statements see the same snapshot. The transaction begins together with the first statement of the
    block, and it ends together with the last ones whose answers are not read in the block.
    """
    try:
        async with connection.pipeline():
            await connection.execute(_SQL["begin_moment" if read_only else "begin"])
            await enter(connection, pool_id, project)
            yield connection
            await connection.execute(_SQL["commit"])
    finally:
        if connection.pgconn.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            await connection.rollback()
