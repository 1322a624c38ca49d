"""Projects: names in the rows of sessions and memories. Only the former names of renamed ones have a table."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from psycopg.rows import class_row

from esker.server.core.reports import ProjectCounts, ProjectSummary
from esker.server.db.database import Connection, Database
from esker.server.db.pipeline import Query
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/projects.sql")

_MOVES = (
    SQL["move_sessions"],
    SQL["move_memories"],
    SQL["move_passages"],
    SQL["move_reflections"],
    SQL["move_quarantines"],
    SQL["move_jobs"],
)


def is_known(project: str | None) -> Query[bool]:
    """Whether a session, a memory or a passage belongs to a project; None is known."""
    return Query(SQL["is_known"], {"project": project}, lambda rows: bool(rows[0][0]))


async def names(connection: Connection, limit: int) -> list[str]:
    """Return the names of projects, in order."""
    return [str(row[0]) for row in await (await connection.execute(SQL["names"], {"limit": limit})).fetchall()]


async def with_memories(connection: Connection, limit: int, now: datetime) -> list[ProjectSummary]:
    """Return the projects with the most live memories, the most first."""
    async with connection.cursor(row_factory=class_row(ProjectSummary)) as cursor:
        await cursor.execute(SQL["with_memories"], {"limit": limit, "now": now})
        return await cursor.fetchall()


async def lock(connection: Connection) -> None:
    """Keep other transactions from renaming projects of this pool."""
    await connection.execute(SQL["lock"])


async def counts(connection: Connection, project: str) -> ProjectCounts:
    """Return how many rows of each kind a project has, superseded memories included."""
    async with connection.cursor(row_factory=class_row(ProjectCounts)) as cursor:
        await cursor.execute(SQL["counts"], {"project": project})
        [found] = await cursor.fetchall()
        return found


async def bound_keys(connection: Connection, now: datetime) -> dict[str, list[str]]:
    """Return the projects to which keys are bound, with the names of these keys."""
    rows = await (await connection.execute(SQL["bound_keys"], {"now": now})).fetchall()
    return {str(project): list(names) for project, names in rows}


def present_names(names: Iterable[str]) -> Query[dict[str, str]]:
    """Return those of some names that are former names of projects, with the present ones."""
    return Query(SQL["present"], {"names": list(names)}, lambda rows: {str(row[0]): str(row[1]) for row in rows})


async def rename_in_jobs(connection: Connection, names: Mapping[str, str]) -> None:
    """Give projects other names in the options of jobs."""
    await connection.execute(SQL["move_jobs"], _in_jobs(names))


async def former_names(connection: Connection) -> dict[str, str]:
    """Return the former names of projects with the present ones."""
    return {str(former): str(name) for former, name in await (await connection.execute(SQL["former"])).fetchall()}


async def keep_former(connection: Connection, former: str, project: str, now: datetime) -> None:
    """Have a name, and all that led to it, lead to another one. The caller holds the lock."""
    names = {"former": former, "project": project}
    await connection.execute(SQL["free_name"], {"project": project})
    await connection.execute(SQL["follow"], names)
    await connection.execute(SQL["add_former"], {**names, "now": now})


async def move(connection: Connection, former: str, project: str) -> int:
    """Give all rows of a former name the present one; return how many. Locks are taken in the common order."""
    names = {"former": former, "project": project, **_in_jobs({former: project})}
    return sum([(await connection.execute(statement, names)).rowcount for statement in _MOVES])


def _in_jobs(names: Mapping[str, str]) -> dict[str, list[str]]:
    return {"formers": list(names), "projects": list(names.values())}


async def pools_with_former(database: Database) -> list[str]:
    """Return the pools that have a project with a former name."""
    return [str(row["pool_id"]) for row in await database.ask(SQL["pools"])]
