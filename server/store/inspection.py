"""Inspects the database: versions, roles, row-level security, and stuck work."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from psycopg.rows import class_row

from esker.server.db.database import Connection, Database
from esker.server.db.statements import Statements
from esker.server.store.jobs import job_name

SQL = Statements(Path(__file__).parent / "sql/inspection.sql")

# The most seconds for a connection to look at the database: a probe has a deadline of its own, of 5 s in the chart.
_PROBE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """Versions, the role, and tables without forced row-level security."""

    postgres: int
    pgvector: str
    role: str
    role_is_safe: bool
    unguarded_tables: list[str]


@dataclass(frozen=True, slots=True)
class Stuck:
    """Stuck work of one pool: pairs of name and last error, and how many rows are `overdue` for a vector.

    `failing` jobs are retried automatically, `jobs` are not. `paused` are jobs that wait for the daily cap: the kind of
    their error, the error, and their number.
    """

    jobs: list[tuple[str, str]]
    failing: list[tuple[str, str]]
    embeddings: list[tuple[str, str]]
    overdue: int
    paused: list[tuple[str, str, int]]


@dataclass(frozen=True, slots=True)
class PoolCounts:
    """How much a pool holds: live `memories` by kind, and work that waits."""

    memories: dict[str, int]
    superseded: int
    passages: int
    sessions: int
    messages: int
    unobserved_tokens: int
    jobs: int
    failed_jobs: int
    last_message_at: datetime | None
    last_memory_at: datetime | None


@dataclass(frozen=True, slots=True)
class LiveFigures:
    """Figures of a pool that change while a page shows them: work that waits, and rows written since it was opened."""

    unobserved_tokens: int
    pending: int
    jobs: int
    failed_jobs: int
    new_memories: int


@dataclass(frozen=True, slots=True)
class Serving:
    """Facts by which a server knows whether it can use its database.

    `version` is the last migration that was applied, `needs` the last one that a server must know to work with it;
    `read_only`: nothing can be written, as on a standby.
    """

    version: int
    needs: int
    read_only: bool


async def pool_counts(connection: Connection) -> PoolCounts:
    """Return how much the pool holds."""
    async with connection.cursor(row_factory=class_row(PoolCounts)) as cursor:
        await cursor.execute(SQL["pool_counts"])
        found = await cursor.fetchone()
    assert found is not None  # it is a count
    return found


async def live_figures(connection: Connection, since: datetime, most: int) -> LiveFigures:
    """Return the work that waits in the pool, and how many rows were written after `since`, up to `most`."""
    async with connection.cursor(row_factory=class_row(LiveFigures)) as cursor:
        await cursor.execute(SQL["live_figures"], {"since": since, "most": most})
        found = await cursor.fetchone()
    assert found is not None  # it is a count
    return found


async def facts(database: Database) -> DatabaseFacts:
    """Return the facts about the database."""
    [versions] = await database.ask(SQL["versions"])
    [role] = await database.ask(SQL["role"])
    unguarded = await database.ask(SQL["unguarded"])
    return DatabaseFacts(
        postgres=versions["postgres"],
        pgvector=versions["pgvector"] or "none",
        role=role["name"],
        role_is_safe=not (role["superuser"] or role["bypasses"] or role["owns"]),
        unguarded_tables=[row["name"] for row in unguarded],
    )


async def serving(database: Database) -> Serving:
    """Return whether the database can be used; a probe does not wait long for the answer. Raises Unavailable."""
    [row] = await database.ask(SQL["serving"], wait_seconds=_PROBE_SECONDS)
    return Serving(**row)


async def stuck(connection: Connection, now: datetime, before: datetime) -> Stuck:
    """Return the stuck work of the pool; a row that was due before `before` is overdue."""
    failed = await (await connection.execute(SQL["failing_jobs"])).fetchall()
    jobs = [(job_name(kind, subject), error, dead) for kind, subject, error, dead in failed]
    embeddings = await (await connection.execute(SQL["dead_embeddings"])).fetchall()
    paused = await (await connection.execute(SQL["paused_jobs"], {"now": now})).fetchall()
    overdue = await (await connection.execute(SQL["overdue_embeddings"], {"moment": before})).fetchone()
    return Stuck(
        jobs=[(what, error) for what, error, dead in jobs if dead],
        failing=[(what, error) for what, error, dead in jobs if not dead],
        embeddings=[(memory, error or "unknown") for memory, error in embeddings],
        overdue=int(overdue[0]) if overdue else 0,
        paused=[(kind, error, int(count)) for kind, error, count in paused],
    )
