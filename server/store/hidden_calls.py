"""Calls of `recall_memory` that clients of the gateway have not seen."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from esker.server.core.conversation.hidden_calls import HiddenCalls
from esker.server.db.database import Connection
from esker.server.db.pipeline import Query
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/hidden_calls.sql")


def at_places(places: Collection[str]) -> Query[Mapping[str, Sequence[str]]]:
    """Return the items at those of these places that have some."""
    return Query(SQL["at_places"], {"places": " ".join(places)}, dict)


def latest_forgetting() -> Query[str]:
    """Return what tells the pool's latest forgetting; an empty text if nothing was ever forgotten in it."""
    return Query(SQL["latest_forgetting"], {}, lambda rows: str(rows[0][0]) if rows else "")


async def put(connection: Connection, session_id: str, hidden: HiddenCalls, now: datetime) -> bool:
    """Store calls instead of earlier ones there; return False if they show, or may say, what is gone or in quarantine.

    The caller holds the session's lock, and the one that blocks forgetting (`packs.lock_to_freeze`).
    """
    values = {"place": hidden.place, "session": session_id, "items": f"[{','.join(hidden.items)}]", "now": now}
    values |= {"shown": " ".join(hidden.shown_ids), "forgetting": hidden.forgetting}
    return (await connection.execute(SQL["put"], values)).rowcount == 1


async def delete_all(connection: Connection) -> None:
    """Delete all calls of the pool."""
    await connection.execute(SQL["delete_all"])


async def delete_showing(connection: Connection, ids: Collection[str]) -> None:
    """Delete the calls whose results show one of these memories or passages. The caller holds `lock_to_forget`."""
    await connection.execute(SQL["delete_showing"], {"ids": list(ids)})


async def delete_at(connection: Connection, places: Collection[str]) -> None:
    """Delete the calls at some places."""
    await connection.execute(SQL["delete_at"], {"places": list(places)})


async def delete_before(connection: Connection, before: datetime) -> None:
    """Delete the calls that were made before a time."""
    await connection.execute(SQL["delete_before"], {"before": before})
