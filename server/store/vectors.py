"""Embedding spaces, their vectors, and the queue of texts without a vector."""

import json
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

import numpy as np
from pgvector import HalfVector
from psycopg import AsyncCursor
from psycopg.rows import TupleRow, class_row

from esker.server.core.arrays import Vector, Vectors
from esker.server.core.records import Calibration, Calibrations, Space, Tier
from esker.server.db.database import Connection, Database
from esker.server.db.pipeline import Query, fetch
from esker.server.db.statements import Statements, for_space

SQL = Statements(Path(__file__).parent / "sql/vectors.sql")
WORK = Statements(Path(__file__).parent / "sql/work.sql")

SpaceState = Literal["building", "active", "retired"]
# The value of the column `tier` in the tables of vectors and postings.
MARK: Mapping[Tier, str] = {"memory": "m", "passage": "p"}
TIER: Mapping[str, Tier] = {mark: tier for tier, mark in MARK.items()}


@dataclass(frozen=True, slots=True)
class PoolSpace:
    """A space as one pool has it.

    `source` is the setting that makes its embedder, `chosen`: a command selected it, `left_at` is when recall switched
    to another space, and `indexed` are the tiers with an approximate index.
    """

    name: str
    model: str
    dimension: int
    source: str
    state: SpaceState
    chosen: bool
    left_at: datetime | None
    calibration: Calibrations
    indexed: frozenset[Tier]
    pool_id: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many texts a pool has, how many lack a vector in a space, and how many of these wait or are dead."""

    texts: int
    missing: int
    waiting: int
    failed: int


@dataclass(frozen=True, slots=True)
class ClaimedRow:
    """A text to embed, of a memory or a passage, and the hash that must still be its own when vectors are stored."""

    id: str
    number: int
    content: str
    content_hash: bytes
    attempts: int


@dataclass(frozen=True, slots=True)
class ClaimedBatch:
    """Rows that were claimed together, and the token of the lease."""

    space: str
    token: uuid.UUID
    rows: list[ClaimedRow]


def from_half(stored: HalfVector) -> Vector:
    """Return a stored vector."""
    return stored.to_numpy().astype(np.float32)


async def create_space(database: Database, space: Space) -> None:
    """Make the table of a space if it does not exist."""
    await database.ask(SQL["create_space"], {"space": space.name, "dimension": space.dimension})


async def lock_spaces(connection: Connection) -> None:
    """Lock the pool's list of spaces, and queueing of missing vectors, until the transaction ends."""
    await connection.execute(SQL["lock_spaces"])


async def register_space(connection: Connection, space: Space, now: datetime, *, chosen: bool = False) -> None:
    """Add a space to the pool: the first becomes active at once, a later one is built beside it.

    A space that was `chosen` by command stays until another one is chosen.
    """
    await lock_spaces(connection)
    calibration = json.dumps({script: asdict(each) for script, each in space.calibration.items()})
    values = {**asdict(space), "calibration": calibration, "chosen": chosen, "now": now}
    await connection.execute(SQL["register_space"], values)


async def recalibrate(connection: Connection, space: Space) -> None:
    """Store a new calibration of a space of the pool."""
    calibration = json.dumps({script: asdict(each) for script, each in space.calibration.items()})
    await connection.execute(SQL["recalibrate"], {"space": space.name, "calibration": calibration})


def all_spaces() -> Query[list[PoolSpace]]:
    """Return the spaces of the pool, oldest first."""
    return Query(SQL["spaces"], {}, _spaces)


async def spaces(connection: Connection) -> list[PoolSpace]:
    """Return the spaces of the pool, oldest first."""
    return await fetch(connection, all_spaces())


def _spaces(rows: Iterable[TupleRow]) -> list[PoolSpace]:
    return [
        PoolSpace(
            *plain,
            calibration={script: Calibration(**each) for script, each in calibration.items()},
            indexed=frozenset(TIER[mark] for mark in indexed),
            pool_id=pool_id,
        )
        for *plain, calibration, indexed, pool_id in rows
    ]


async def of_rows(connection: Connection, ids: Collection[str]) -> dict[str, Vector]:
    """Return the current vectors of these rows in the active space; rows without one are missing."""
    active = next((space for space in await spaces(connection) if space.state == "active"), None)
    if active is None:
        return {}
    async with connection.cursor(binary=True) as cursor:
        await cursor.execute(for_space(SQL["of_rows"], active.name), {"ids": list(ids)})
        return {str(row[0]): from_half(row[1]) for row in await cursor.fetchall()}


async def chosen_sources(database: Database) -> list[str]:
    """Return the settings that make the embedders of the spaces which were chosen by command in any pool."""
    return [row["source"] for row in await database.ask(SQL["chosen_sources"])]


async def activate(connection: Connection, space: str, now: datetime, *, chosen: bool = False) -> None:
    """Switch recall to `space` and delete the queue of the former one."""
    await lock_spaces(connection)
    await connection.execute(SQL["activate"], {"space": space, "now": now, "chosen": chosen})


async def choose_active(connection: Connection) -> None:
    """Have the pool keep its active space, as if a command had chosen it."""
    await connection.execute(SQL["choose_active"])


async def give_up_building(connection: Connection) -> None:
    """Keep the active space in spite of a worker's setting; a space that is being built is retired."""
    await connection.execute(SQL["give_up"])


async def delete_retired(connection: Connection, space: str) -> int:
    """Delete a retired space of the pool with its vectors; return how many vectors."""
    deleted = (await connection.execute(for_space(SQL["delete_all"], space))).rowcount
    await connection.execute(SQL["delete_retired"], {"space": space})
    return deleted


async def coverage(connection: Connection, space: str) -> Coverage:
    """Return how many of the pool's texts have vectors in a space. Counted from the texts, not from the queue."""
    row = await (await connection.execute(for_space(SQL["missing"], space), {"space": space})).fetchone()
    return Coverage(*map(int, row)) if row else Coverage(0, 0, 0, 0)


async def queued(connection: Connection) -> dict[str, tuple[int, int]]:
    """Return how many texts wait for a vector, and how many were refused for good, by space with a queue."""
    found = await connection.execute(SQL["queued"])
    return {str(row[0]): (int(row[1]), int(row[2])) for row in await found.fetchall()}


async def enqueue(connection: Connection, ids: Collection[str], now: datetime) -> None:
    """Queue rows for embedding, in the transaction that wrote them, and wake the worker when it commits."""
    if ids:
        await connection.execute(SQL["enqueue"], {"ids": list(ids), "now": now})
        await wake(connection)


async def wake(connection: Connection) -> None:
    """Wake the worker when this transaction commits."""
    await connection.execute(SQL["notify"])


async def enqueue_missing(connection: Connection, space: str, now: datetime) -> int:
    """Queue all texts that have neither a current vector in `space` nor an entry in its queue; return how many.

    The caller has locked the spaces. This locks the texts, so it must precede statements that lock queue entries.
    """
    values = {"space": space, "now": now}
    queued = 0
    for name in ("enqueue_missing", "enqueue_missing_passages"):
        queued += (await connection.execute(for_space(SQL[name], space), values)).rowcount
    return queued


async def delete_orphans(connection: Connection, space: str) -> int:
    """Delete vectors of deleted texts; return how many."""
    return (await connection.execute(for_space(SQL["delete_orphans"], space))).rowcount


async def pools_with_work(database: Database, space: str, now: datetime) -> list[str]:
    """Return the pools that have rows to embed in `space` at this moment."""
    rows = await database.ask(WORK["pools_with_embedding_work"], {"space": space, "now": now})
    return [str(row["pool_id"]) for row in rows]


async def pools_without(database: Database, space: Space, *, or_retired: bool) -> list[str]:
    """Return the pools that do not have this space yet or, with `or_retired`, have retired it.

    Pools with a space that was chosen by command for another setting are left out.
    """
    values = {"space": space.name, "source": space.source, "or_retired": or_retired}
    rows = await database.ask(WORK["pools_without_space"], values)
    return [str(row["pool_id"]) for row in rows]


async def bring_forward(
    connection: Connection, space: str, now: datetime, *, untried: datetime, tried: datetime
) -> int:
    """Make rows due that wait for a later time than `untried` or, if they were tried, than `tried`; return how many."""
    values = {"space": space, "now": now, "untried": untried, "tried": tried}
    return (await connection.execute(SQL["bring_forward"], values)).rowcount


async def bury(connection: Connection, space: str, most: int, now: datetime) -> None:
    """Mark rows dead whose worker has died `most` times."""
    await connection.execute(SQL["bury"], {"space": space, "most": most, "now": now})


async def due_since(connection: Connection, space: str, now: datetime) -> datetime | None:
    """Return the due time of the row that will be claimed last; None if no row is due."""
    row = await (await connection.execute(SQL["due_since"], {"space": space, "now": now})).fetchone()
    return row[0] if row else None


async def claim(
    connection: Connection,
    space: str,
    now: datetime,
    lease: timedelta,
    *,
    tried: bool,
    limit: int,
    token: uuid.UUID | None = None,
) -> ClaimedBatch:
    """Claim up to `limit` rows, either those that were `tried` before or the others: urgent ones first, then the
    newest.

    `token` proves the lease; without it, a random one does.
    """
    token = token or uuid.uuid4()
    values = {"space": space, "tried": tried, "limit": limit, "now": now, "until": now + lease, "token": token}
    async with connection.cursor(row_factory=class_row(ClaimedRow)) as cursor:
        await cursor.execute(SQL["claim"], values)
        return ClaimedBatch(space, token, await cursor.fetchall())


async def store(
    connection: Connection,
    batch: ClaimedBatch,
    rows: Sequence[ClaimedRow],
    vectors: Sequence[Vectors],
    now: datetime,
) -> int:
    """Store the vectors of the parts of claimed rows, in order; return for how many rows.

    A row that was forgotten, or claimed by another worker meanwhile, is left out.
    """
    made = [
        (row, part, vector) for row, of_row in zip(rows, vectors, strict=True) for part, vector in enumerate(of_row)
    ]
    values = {
        "space": batch.space,
        "token": batch.token,
        "now": now,
        "numbers": [row.number for row, _, _ in made],
        "parts": [part for _, part, _ in made],
        "hashes": [row.content_hash for row, _, _ in made],
        "vectors": [HalfVector(vector) for _, _, vector in made],
    }
    return (await connection.execute(for_space(SQL["store"], batch.space), values)).rowcount


async def fail(
    connection: Connection, batch: ClaimedBatch, row: ClaimedRow, error: str, not_before: datetime, *, dead: bool
) -> None:
    """Record a failure: the row is retried after `not_before`, or is dead."""
    values = {"space": batch.space, "token": batch.token, "number": row.number, "error": error}
    await connection.execute(SQL["fail"], {**values, "not_before": not_before, "dead": dead})


async def release(connection: Connection, batch: ClaimedBatch, error: str | None, not_before: datetime) -> None:
    """Release a batch without counting an attempt."""
    values = {"space": batch.space, "token": batch.token, "error": error, "not_before": not_before}
    await connection.execute(SQL["release"], values)


async def revive(connection: Connection, now: datetime) -> int:
    """Queue dead rows again; return how many."""
    return (await connection.execute(SQL["revive"], {"now": now})).rowcount


def waiting() -> Query[int]:
    """Return how many rows wait for their vector in the active space."""
    return Query(SQL["waiting"], {}, lambda rows: int(rows[0][0]))


async def unfinished(connection: Connection, space: str) -> int:
    """Return how many rows have neither a vector in `space` nor a recorded error."""
    return await _count(connection, "unfinished", space)


async def live_rows(connection: Connection) -> int:
    """Return how many rows and passages recall may find."""
    return await _count(connection, "live_rows", "")


async def _count(connection: Connection, statement: str, space: str) -> int:
    row = await (await connection.execute(SQL[statement], {"space": space})).fetchone()
    return int(row[0]) if row else 0


async def delete(connection: Connection, tier: Tier, numbers: Collection[int]) -> int:
    """Delete the vectors of deleted texts, by their numbers, in every space of the pool; return how many."""
    deleted = 0
    for space in await spaces(connection):
        deleted += (await _delete_in(connection, space, tier, numbers)).rowcount
    return deleted


async def delete_in(connection: Connection, those: Iterable[PoolSpace], tier: Tier, numbers: Collection[int]) -> None:
    """Delete the vectors of deleted texts, by their numbers, in some spaces."""
    for space in those:
        await _delete_in(connection, space, tier, numbers)


async def _delete_in(
    connection: Connection, space: PoolSpace, tier: Tier, numbers: Collection[int]
) -> AsyncCursor[TupleRow]:
    values = {"tier": MARK[tier], "numbers": list(numbers)}
    return await connection.execute(for_space(SQL["delete"], space.name), values)
