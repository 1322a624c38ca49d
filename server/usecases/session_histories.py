"""Know sessions again by the conversations that they have, if their clients do not name them."""

from collections.abc import Sequence
from dataclasses import replace

from esker.server.core.conversation.records import StoredSession
from esker.server.db.pipeline import send
from esker.server.store import session_histories
from esker.server.usecases.open_session import SessionRequest, open_in
from esker.server.usecases.parts import Parts


async def keep_history(parts: Parts, pool_id: str, session_id: str, latest: str, answered: str) -> None:
    """Store the marks of a session's latest history, and of the one up to its latest answer. Raises Unavailable."""
    async with parts.database.tenant(pool_id) as connection:
        await session_histories.put(connection, session_id, latest, answered)


async def session_with_history(parts: Parts, pool_id: str, marks: Sequence[str]) -> str | None:
    """Return the external id of the session that has the first of some marks; None without one. Raises Unavailable."""
    async with parts.database.moment_pipeline(pool_id) as connection:
        asked = await send(connection, session_histories.with_one_of(marks))
    return await asked


async def begin_session(
    parts: Parts, pool_id: str, asked: SessionRequest, known: Sequence[str], latest: str, answered: str
) -> StoredSession:
    """Begin the session that is asked for, with the marks of its latest history; return it.

    If a session has one of the `known` marks by now, return that one: of two servers that are asked for a conversation
    in the same moment, the second one waits until the first has begun its session. Raises Unavailable.
    """
    async with parts.database.tenant_pipeline(pool_id) as connection:
        await send(connection, session_histories.locked(latest))
        found = await (await send(connection, session_histories.with_one_of(known)))
        session = await open_in(connection, replace(asked, external_id=found or asked.external_id), parts.clock())
        if found is None:
            await session_histories.put(connection, session.id, latest, answered)
        return session
