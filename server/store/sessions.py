"""Sessions and the observer's cursor in them."""

from datetime import datetime
from pathlib import Path

from psycopg.rows import class_row

from server.core.errors import LeaseLost, NotFound
from server.core.records import Observed, Session
from server.db.database import Connection
from server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/sessions.sql")


async def upsert(
    connection: Connection,
    *,
    session_id: str,
    client: str,
    external_id: str,
    project: str | None,
    cwd: str | None,
    timezone: str,
    effective_context: int,
    now: datetime,
) -> Session:
    """Return the session of a client under its own name for it, made as `session_id` when it is new."""
    values = {"id": session_id, "client": client, "external_id": external_id, "project": project, "cwd": cwd}
    values |= {"timezone": timezone, "effective_context": effective_context, "now": now}
    async with connection.cursor(row_factory=class_row(Session)) as cursor:
        await cursor.execute(SQL["upsert"], values)
        found = await cursor.fetchone()
    assert found is not None  # an upsert always returns its row
    return found


async def get(connection: Connection, session_id: str, *, lock: bool = False) -> Session:
    """Return a session, locked until the transaction ends if asked. Raises NotFound."""
    async with connection.cursor(row_factory=class_row(Session)) as cursor:
        await cursor.execute(SQL["lock" if lock else "get"], {"id": session_id})
        found = await cursor.fetchone()
    if found is None:
        raise NotFound(f"There is no session {session_id!r} in this pool.")
    return found


async def listed(
    connection: Connection,
    *,
    external_id: str | None = None,
    unobserved: bool = False,
    before: str | None = None,
    limit: int = 100,
) -> list[Session]:
    """Return sessions, newest first: those that a client knows as `external_id`, those with unobserved messages."""
    values = {"external_id": external_id, "unobserved": unobserved, "before": before, "limit": limit}
    async with connection.cursor(row_factory=class_row(Session)) as cursor:
        await cursor.execute(SQL["list"], values)
        return await cursor.fetchall()


async def extend(connection: Connection, session_id: str, messages: int, tokens: int, now: datetime) -> int:
    """Count `messages` more messages of `tokens` tokens; return the unobserved tokens."""
    values = {"id": session_id, "messages": messages, "tokens": tokens, "now": now}
    row = await (await connection.execute(SQL["extend"], values)).fetchone()
    assert row is not None  # the caller holds the session's lock
    return int(row[0])


async def cover(connection: Connection, session_id: str, first_seq: int, last_seq: int, observed: Observed) -> None:
    """Mark the span observed. Raises LeaseLost when the cursor is not just before it any more."""
    values = {"id": session_id, "first_seq": first_seq, "last_seq": last_seq}
    values |= {
        "current_task": observed.current_task,
        "suggested_continuation": observed.suggested_continuation,
        "thread_title": observed.thread_title,
    }
    if await (await connection.execute(SQL["cover"], values)).fetchone() is None:
        raise LeaseLost("Another worker has observed these messages.")


async def forget_task(connection: Connection, session_id: str) -> None:
    """Take out the task, continuation and title, which may repeat what was forgotten."""
    await connection.execute(SQL["forget_task"], {"id": session_id})
