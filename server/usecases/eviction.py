"""The messages that the gateway has left out of a session's requests, and those that it may leave out."""

from collections.abc import Collection

from esker.server.db.pipeline import send
from esker.server.store import messages, sessions
from esker.server.usecases.forgotten_places import new_names
from esker.server.usecases.parts import Parts


async def last_evicted(parts: Parts, pool_id: str, session_id: str) -> str | None:
    """Return the key of a session's latest eviction, or None: the id of the turn with which its tail began then."""
    async with parts.database.moment_pipeline(pool_id) as connection:
        asked = await send(connection, sessions.latest_event(session_id, "evicted"))
    return await asked


async def observed_among(parts: Parts, pool_id: str, session_id: str, external_ids: Collection[str]) -> set[str]:
    """Return the external ids of those of these messages that are observed, also of those that have others now."""
    async with parts.database.moment_pipeline(pool_id) as connection:
        renamed = await new_names(connection, dict.fromkeys(external_ids))
        asked = await send(connection, messages.observed(session_id, {*external_ids, *renamed.values()}))
    there = await asked
    return {own for own in external_ids if renamed.get(own, own) in there}
