"""Observation groups: which messages an observer call covered."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from esker.server.core.context.session_memory import GroupSummary
from esker.server.core.conversation.records import Group, StoredSession
from esker.server.core.facts.records import Observed
from esker.server.db.database import Connection
from esker.server.db.pipeline import Query
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/groups.sql")


async def insert(
    connection: Connection,
    *,
    group_id: str,
    session: StoredSession,
    first_seq: int,
    last_seq: int,
    observer: str,
    observed: Observed,
    merged: int,
    replaced: int,
    now: datetime,
) -> None:
    """Record that `observer` covered the messages from `first_seq` to `last_seq`.

    `merged` counts its facts that were already rows, `replaced` the rows that they superseded.
    """
    used = observed.used
    values = {
        "id": group_id,
        "session": session.id,
        "first_seq": first_seq,
        "last_seq": last_seq,
        "cwd": session.cwd,
        "observer": observer,
        "current_task": observed.current_task,
        "suggested_continuation": observed.suggested_continuation,
        "thread_title": observed.thread_title,
        "input_tokens": used.input_tokens + used.cache_write_tokens + used.cache_read_tokens,
        "output_tokens": used.output_tokens,
        "merged": merged,
        "replaced": replaced,
        "refused": Jsonb(dict(observed.refused)),
        "now": now,
    }
    await connection.execute(SQL["insert"], values)


def of_session(session_id: str) -> Query[dict[str, Group]]:
    """Return the groups of a session by id, in order."""
    values = {"session": session_id}
    return Query(SQL["of_session"], values, lambda rows: {group.id: group for group in rows}, class_row(Group))


async def summaries(connection: Connection, session_id: str) -> list[GroupSummary]:
    """Return the groups of a session, newest first, with their results."""
    async with connection.cursor(row_factory=class_row(GroupSummary)) as cursor:
        await cursor.execute(SQL["summaries"], {"session": session_id})
        return await cursor.fetchall()


@dataclass(frozen=True, slots=True)
class Counted:
    """How many groups and observations a session has, and how many of its messages the groups cover."""

    groups: int
    covered: int
    observations: int


async def count(connection: Connection, session_id: str) -> Counted:
    """Return the counts of a session, superseded rows included."""
    row = await (await connection.execute(SQL["count"], {"session": session_id})).fetchone()
    assert row is not None  # it counts
    return Counted(*map(int, row))


@dataclass(frozen=True, slots=True)
class GroupOutcome:
    """The result of one observer call: new rows, and counts of facts that did not become one."""

    id: str
    observer: str
    memory_ids: list[str]
    merged: int
    replaced: int
    refused: dict[str, int]


def since(session_id: str, seq: int) -> Query[list[GroupOutcome]]:
    """Return the results of groups after message `seq`, in order."""
    return Query(SQL["since"], {"session": session_id, "after": seq}, list, class_row(GroupOutcome))
