"""Events: what a client says happens to its context."""

from typing import Literal

from server.core.errors import Conflict
from server.store import jobs, sessions
from server.usecases.pack import freeze_pack
from server.usecases.parts import Parts

EventKind = Literal["compaction_pending", "session_end", "turn_end", "evicted"]


async def receive_event(parts: Parts, pool_id: str, session_id: str, kind: EventKind) -> None:
    """Act on an event. Raises NotFound, and Conflict where observing is switched off.

    `evicted`: the client has dropped messages, so its prefix is lost anyway and the pack is built anew.
    `compaction_pending`, `session_end`: everything that the session holds is observed now, in the background.
    `turn_end`: nothing; the tokens decide.
    """
    now = parts.clock()
    async with parts.database.tenant(pool_id) as connection:
        session = await sessions.lock(connection, session_id)
        if kind == "evicted":
            await freeze_pack(connection, session, "evicted", now)
        elif kind != "turn_end" and session.unobserved_tokens:
            if parts.observer is None:
                raise Conflict("Observing is switched off on this server.")
            await jobs.request(connection, "observe", session_id, now, session.last_seq)
