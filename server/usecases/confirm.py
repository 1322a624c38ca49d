"""Confirm a row that an agent wrote: from then on it counts as a person's word."""

from esker.server.core.records import Principal, SourcedMemory
from esker.server.store import audit, memories
from esker.server.usecases.parts import Parts
from esker.server.usecases.remember import with_sources


async def confirm(parts: Parts, who: Principal, memory_id: str) -> SourcedMemory:
    """Give a live note or pinned row the trust of a person, and return it.

    The caller must be known to act for a person: tools of agents never call this. Raises NotFound, also for a row that
    was taken from a conversation or replaced.
    """
    async with parts.database.tenant(who.pool_id) as connection:
        if not await memories.confirm(connection, memory_id):
            raise memories.missing(memory_id)
        await audit.insert(connection, who.actor, "memory.confirm", memory_id, {"memories": 1}, parts.clock())
        return (await with_sources(connection, [(await memories.get(connection, [memory_id]))[memory_id]]))[0]
