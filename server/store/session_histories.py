"""The conversations of sessions that their clients do not name."""

from collections.abc import Collection, Sequence
from pathlib import Path

from esker.server.db.database import Connection
from esker.server.db.pipeline import Query
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/session_histories.sql")


def locked(mark: str) -> Query[None]:
    """Lock the conversation with a mark until the end of the transaction."""
    return Query(SQL["lock"], {"mark": mark}, lambda _: None)


def with_one_of(marks: Sequence[str]) -> Query[str | None]:
    """Return the external id of the session that has the first of some marks; None if none has one of them."""
    return Query(SQL["with_one_of"], {"marks": " ".join(marks)}, lambda rows: rows[0][0] if rows else None)


async def put(connection: Connection, session_id: str, latest: str, answered: str) -> None:
    """Store the marks of a session's latest history, and of the one up to its latest answer."""
    await connection.execute(SQL["put"], {"session": session_id, "latest": latest, "answered": answered})


async def delete(connection: Connection, session_ids: Collection[str]) -> None:
    """Delete the marks of some sessions."""
    await connection.execute(SQL["delete"], {"sessions": list(session_ids)})
