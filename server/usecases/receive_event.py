"""Client events: what happens to the context of a client."""

from dataclasses import dataclass
from typing import Literal

from esker.server.core.conversation.records import StoredSession
from esker.server.core.redaction import redact_name
from esker.server.db.database import Connection
from esker.server.store import jobs, messages, sessions
from esker.server.usecases.forgotten_places import new_names
from esker.server.usecases.pack import freeze_pack
from esker.server.usecases.parts import Parts

EventKind = Literal["compaction_pending", "session_end", "turn_end", "evicted"]


@dataclass(frozen=True, slots=True)
class EventReport:
    """The effect of an event. `repeated`: the event was reported before, so nothing was done."""

    received: EventKind
    repeated: bool
    observing: bool


async def receive_event(
    parts: Parts, pool_id: str, session_id: str, kind: EventKind, dedupe_key: str | None = None
) -> EventReport:
    """Act on an event, once for each kind and `dedupe_key`. Raises NotFound.

    `compaction_pending`: all messages of the session are observed now, in the background.
    `evicted`: the same, and the pack is rebuilt: the client has dropped messages, so its cached prefix is lost anyway.
    `session_end`: the session is observed now if it has enough user messages, else when it has been idle.
    `turn_end`: nothing; the unobserved tokens decide.
    """
    now = parts.clock()
    async with parts.database.tenant(pool_id) as connection:
        session = await sessions.lock(connection, session_id)
        if dedupe_key is not None:
            named = redact_name(dedupe_key)
            named = (await new_names(connection, {named: None})).get(named, named)
            if not await sessions.add_event(connection, session_id, named, kind, now):
                return EventReport(kind, repeated=True, observing=False)
        if kind == "evicted":
            await freeze_pack(parts, connection, session, "evicted", now)
        to_observe = parts.observer is not None and session.unobserved_tokens > 0
        observing = to_observe and await _calls_for_observing(parts, connection, session, kind)
        if observing:
            await jobs.request(connection, "observe", session_id, now, up_to_seq=session.last_seq)
        return EventReport(kind, repeated=False, observing=observing)


async def _calls_for_observing(parts: Parts, connection: Connection, session: StoredSession, kind: EventKind) -> bool:
    if kind == "session_end":
        least = parts.settings.session_end_min_messages
        return await messages.count_spoken(connection, session.id, least) >= least
    return kind in ("compaction_pending", "evicted")
