"""The audit trail: ids and counts, never content."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from psycopg.types.json import Jsonb

from esker.server.core.json_input import Json
from esker.server.db.database import Connection
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/audit.sql")


async def insert(
    connection: Connection, actor: str, action: str, target: str, detail: Mapping[str, Json], now: datetime
) -> None:
    """Record that `actor` did `action` to the thing with the id `target`."""
    values = {"actor": actor, "action": action, "target": target, "detail": Jsonb(dict(detail)), "now": now}
    await connection.execute(SQL["insert"], values)
