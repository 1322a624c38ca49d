"""The audit trail: ids and counts, never content."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from esker.server.core.json_input import Json
from esker.server.core.records import AuditEntry
from esker.server.db.database import Connection
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/audit.sql")


async def insert(
    connection: Connection, actor: str, action: str, target: str, detail: Mapping[str, Json], now: datetime
) -> None:
    """Record that `actor` did `action` to the thing with the id `target`."""
    values = {"actor": actor, "action": action, "target": target, "detail": Jsonb(dict(detail)), "now": now}
    await connection.execute(SQL["insert"], values)


async def listed(
    connection: Connection, *, actor: str | None, action: str | None, before: int | None, limit: int
) -> list[AuditEntry]:
    """Return entries of the pool, newest first; `action` may be the part before the dot."""
    async with connection.cursor(row_factory=class_row(AuditEntry)) as cursor:
        await cursor.execute(SQL["list"], {"actor": actor, "action": action, "before": before, "limit": limit})
        return await cursor.fetchall()
