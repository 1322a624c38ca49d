"""Observation groups: which messages an observer call covered."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from psycopg.rows import class_row

from server.core.records import Group, Message, Observed, Session
from server.db.database import Connection
from server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/groups.sql")


async def insert(
    connection: Connection,
    *,
    group_id: str,
    session: Session,
    first: Message,
    last: Message,
    observer: str,
    observed: Observed,
    now: datetime,
) -> None:
    """Record that `observer` covered the messages from `first` to `last`."""
    values = {
        "id": group_id,
        "session": session.id,
        "first_seq": first.seq,
        "last_seq": last.seq,
        "first_external_id": first.external_id,
        "last_external_id": last.external_id,
        "cwd": session.cwd,
        "observer": observer,
        "current_task": observed.current_task,
        "suggested_continuation": observed.suggested_continuation,
        "thread_title": observed.thread_title,
        "input_tokens": observed.used.input_tokens,
        "output_tokens": observed.used.output_tokens,
        "now": now,
    }
    await connection.execute(SQL["insert"], values)


async def of_session(connection: Connection, session_id: str) -> list[Group]:
    """Return the groups of a session in order."""
    async with connection.cursor(row_factory=class_row(Group)) as cursor:
        await cursor.execute(SQL["of_session"], {"session": session_id})
        return await cursor.fetchall()


async def count(connection: Connection, session_id: str) -> tuple[int, int]:
    """Return how many groups and observations of a session there are, superseded ones included."""
    row = await (await connection.execute(SQL["count"], {"session": session_id})).fetchone()
    assert row is not None  # it counts
    return int(row[0]), int(row[1])


async def since(connection: Connection, session_id: str, seq: int) -> tuple[list[str], list[str]]:
    """Return the ids of the groups that cover messages behind `seq`, and of the memories that came of them."""
    cursor = await connection.execute(SQL["since"], {"session": session_id, "after": seq})
    rows = await cursor.fetchall()
    return [str(row[0]) for row in rows], [str(memory) for row in rows for memory in row[1]]


async def forget_around(connection: Connection, session_id: str, seqs: Sequence[int]) -> None:
    """Take out what groups say about the messages at these places."""
    await connection.execute(SQL["forget_around"], {"session": session_id, "seqs": list(seqs)})
