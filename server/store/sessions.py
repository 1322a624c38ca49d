"""Sessions and the observer's cursor in them.

Every transaction takes its locks in one order: sessions by id, memories by id, passages by id, entries in the queue of
vectors (those of passages first, then by number), then the rest. So transactions never deadlock.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from pathlib import Path

from psycopg.errors import InsufficientPrivilege
from psycopg.rows import TupleRow, class_row

from esker.server.core.budgets import DEFAULT_EFFECTIVE_CONTEXT
from esker.server.core.conversation.records import KeptBy, StoredSession
from esker.server.core.errors import Forbidden, LeaseLost, NotFound
from esker.server.core.facts.records import Observed
from esker.server.core.page_cursor import PageCursor
from esker.server.db.database import Connection
from esker.server.db.driver_errors import is_missing_right
from esker.server.db.pipeline import Answer, Query, fetch, send
from esker.server.db.statements import Statements
from esker.server.store.messages import MessageToStore

SQL = Statements(Path(__file__).parent / "sql/sessions.sql")


async def upsert(
    connection: Connection,
    *,
    session_id: str,
    client: str,
    external_id: str,
    project: str | None,
    cwd: str | None,
    timezone: str | None,
    effective_context: int | None,
    kept_by: KeptBy,
    now: datetime,
) -> StoredSession:
    """Return the session with this client and external id, made with the id `session_id` if it is new.

    A given time zone or effective context replaces the stored one. Raises Forbidden if it exists outside the project of
    the transaction.
    """
    values = {"id": session_id, "client": client, "external_id": external_id, "project": project, "cwd": cwd}
    values |= {"timezone": timezone, "effective_context": effective_context, "kept_by": kept_by, "now": now}
    values |= {"default_context": DEFAULT_EFFECTIVE_CONTEXT}
    async with connection.cursor(row_factory=class_row(StoredSession)) as cursor:
        try:
            await cursor.execute(SQL["upsert"], values)
        except InsufficientPrivilege as error:
            if is_missing_right(error):
                raise
            raise Forbidden(
                "This session of the client belongs to another project than this key, or to none.",
                hint="Use another external_id, or a key that is not bound to a project.",
            ) from error
        found = await cursor.fetchone()
    assert found is not None  # an upsert always returns its row
    return found


def by_id(session_id: str) -> Query[StoredSession]:
    """Return a session. Reading the answer raises NotFound."""
    return Query(
        SQL["get"],
        {"id": session_id},
        lambda rows: _existing(next(iter(rows), None), session_id),
        class_row(StoredSession),
    )


async def get(connection: Connection, session_id: str) -> StoredSession:
    """Return a session. Raises NotFound."""
    return await fetch(connection, by_id(session_id))


async def several(connection: Connection, session_ids: Collection[str]) -> dict[str, StoredSession]:
    """Return those of these sessions that exist, by id."""
    async with connection.cursor(row_factory=class_row(StoredSession)) as cursor:
        await cursor.execute(SQL["several"], {"ids": list(session_ids)})
        return {session.id: session for session in await cursor.fetchall()}


def locked(session_id: str) -> Query[StoredSession]:
    """Return a session, locked until the transaction ends. Reading the answer raises NotFound."""
    return Query(
        SQL["lock"],
        {"ids": [session_id]},
        lambda rows: _existing(next(iter(rows), None), session_id),
        class_row(StoredSession),
    )


async def lock(connection: Connection, session_id: str) -> StoredSession:
    """Return a session, locked until the transaction ends. Raises NotFound."""
    return await fetch(connection, locked(session_id))


async def lock_all(connection: Connection, session_ids: Collection[str]) -> dict[str, StoredSession]:
    """Return sessions by id, locked until the transaction ends."""
    async with connection.cursor(row_factory=class_row(StoredSession)) as cursor:
        await cursor.execute(SQL["lock"], {"ids": list(session_ids)})
        return {session.id: session for session in await cursor.fetchall()}


def missing(session_id: str) -> NotFound:
    """Return the error for a session that does not exist."""
    hint = "`esker sessions` lists the existing ones; a key gives access only to its own pool."
    return NotFound(f"There is no session {session_id!r} in this pool.", hint=hint)


def _existing(session: StoredSession | None, session_id: str) -> StoredSession:
    if session is None:
        raise missing(session_id)
    return session


async def listed(
    connection: Connection,
    *,
    external_id: str | None = None,
    project: str | None = None,
    unobserved: bool = False,
    unreflected: bool = False,
    before: PageCursor | None = None,
    limit: int = 100,
) -> list[StoredSession]:
    """Return sessions, the latest first.

    `external_id`, `project`: only those with this external id or project; `unobserved`: only with unobserved messages;
    `unreflected`: only with live observations; `before`: only those after this cursor.
    """
    values: dict[str, object] = {"external_id": external_id, "project": project}
    values |= {"unobserved": unobserved, "unreflected": unreflected}
    values |= {"begun_at": before and before.moment, "before": before and before.id, "limit": limit}
    async with connection.cursor(row_factory=class_row(StoredSession)) as cursor:
        await cursor.execute(SQL["list"], values)
        return await cursor.fetchall()


async def latest_with_task(connection: Connection, project: str | None) -> StoredSession | None:
    """Return the session of a project, or (None) of the pool, with a task and the latest message."""
    async with connection.cursor(row_factory=class_row(StoredSession)) as cursor:
        await cursor.execute(SQL["latest_with_task"], {"project": project})
        return await cursor.fetchone()


def unobserved_tokens(session_id: str | None) -> Query[int]:
    """Return the tokens of unobserved messages in one session or (None) in the pool."""
    return Query(SQL["unobserved_tokens"], {"session": session_id}, lambda rows: int(rows[0][0]))


async def extend(connection: Connection, session_id: str, new: Sequence[MessageToStore], now: datetime) -> None:
    """Count messages that were appended. The caller holds the session's lock."""
    values = {"id": session_id, "messages": len(new), "tokens": sum(message.tokens for message in new), "now": now}
    values["first_sent_at"] = min(stored.message.sent_at for stored in new)
    # A clock that runs ahead must not make a session the latest for good.
    values["last_sent_at"] = max(min(stored.message.sent_at, stored.received_at or now) for stored in new)
    await connection.execute(SQL["extend"], values)


async def cover(
    connection: Connection, session_id: str, first_seq: int, last_seq: int, observed: Observed
) -> Answer[None]:
    """Mark the span observed. Reading the answer raises LeaseLost if the cursor is no longer just before it."""
    values = {"id": session_id, "first_seq": first_seq, "last_seq": last_seq}
    values |= {
        "current_task": observed.current_task,
        "suggested_continuation": observed.suggested_continuation,
        "thread_title": observed.thread_title,
    }

    def check(rows: Sequence[TupleRow]) -> None:
        if not rows:
            raise LeaseLost("Another worker has observed these messages.")

    return await send(connection, Query(SQL["cover"], values, check))


async def reflect_at(connection: Connection, session_id: str, tokens: int | None) -> None:
    """Set how many tokens of live observations trigger the next automatic reflection; None: the usual trigger."""
    await connection.execute(SQL["reflect_at"], {"id": session_id, "tokens": tokens})


def latest_event(session_id: str, kind: str) -> Query[str | None]:
    """Return the key of the latest event of a kind, or None."""
    return Query(
        SQL["latest_event"],
        {"session": session_id, "kind": kind},
        lambda rows: next((str(row[0]) for row in rows), None),
    )


async def add_event(connection: Connection, session_id: str, key: str, kind: str, now: datetime) -> bool:
    """Store an event under its key; return whether it is new."""
    values = {"session": session_id, "key": key, "kind": kind, "now": now}
    return await (await connection.execute(SQL["add_event"], values)).fetchone() is not None
