"""Projects: names in the rows of sessions and memories, without a table of their own."""

from pathlib import Path

from esker.server.db.database import Connection
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/projects.sql")


async def is_known(connection: Connection, project: str) -> bool:
    """Whether a session, a memory or a passage belongs to a project."""
    row = await (await connection.execute(SQL["is_known"], {"project": project})).fetchone()
    return bool(row and row[0])


async def names(connection: Connection, limit: int) -> list[str]:
    """Return the names of projects, in order."""
    return [str(row[0]) for row in await (await connection.execute(SQL["names"], {"limit": limit})).fetchall()]
