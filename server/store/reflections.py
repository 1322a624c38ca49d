"""Reflections: what was condensed into what."""

from datetime import datetime
from pathlib import Path

from server.core.records import TokenUse
from server.db.database import Connection
from server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/reflections.sql")


async def insert(
    connection: Connection,
    *,
    reflection_id: str,
    session_id: str,
    reflector: str,
    input_ids: list[str],
    output_ids: list[str],
    tokens_before: int,
    tokens_after: int,
    used: TokenUse,
    now: datetime,
) -> None:
    """Record one reflection of a session. Token counts before and after are our estimates."""
    values = {
        "id": reflection_id,
        "session": session_id,
        "reflector": reflector,
        "input_ids": input_ids,
        "output_ids": output_ids,
        "tokens_before": tokens_before,
        "tokens_after": tokens_after,
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "now": now,
    }
    await connection.execute(SQL["insert"], values)
