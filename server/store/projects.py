"""Projects: names in the rows of sessions and memories, without a table of their own."""

from datetime import datetime
from pathlib import Path

from psycopg.rows import class_row

from esker.server.core.reports import ProjectSummary
from esker.server.db.database import Connection
from esker.server.db.pipeline import Query
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/projects.sql")


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
