"""Switch passages of a pool on or off. Off deletes them, and the messages stay; on indexes what is there."""

from dataclasses import dataclass

from esker.server.store import audit, passages, vectors
from esker.server.usecases.authenticate import require_pool
from esker.server.usecases.cut_passages import OnProgress, cut_behind
from esker.server.usecases.parts import Parts

# A batch is over well before anybody who waits for its rows would notice.
_MOST_PASSAGES = 1_000
_MOST_SESSIONS = 1_000


@dataclass(frozen=True, slots=True)
class Switched:
    """What a pool has now: how many sessions were indexed for it, or how many passages were deleted."""

    on: bool
    sessions: int
    deleted: int


async def switch_passages(parts: Parts, pool: str, *, on: bool, told: OnProgress) -> Switched:
    """Have passages in a pool, or none. What was broken off is finished by the same call. Raises NotFound."""
    found = await require_pool(parts, pool)
    async with parts.database.tenant(found.id) as connection:
        was = await passages.wanted(connection)
        if not on:
            await passages.switch(connection, on=False)
        await audit.insert(connection, "operator", "pool.set", found.id, {"passages": on}, parts.clock())
    # While a pool has none nobody writes any, so what there is now is left from before.
    deleted = 0 if on and was else await _delete_all(parts, found.id, told)
    if not on:
        return Switched(on=False, sessions=0, deleted=deleted)
    async with parts.database.tenant(found.id) as connection:
        await passages.switch(connection, on=True)
    return Switched(on=True, sessions=await cut_behind(parts, found.id, told), deleted=0)


async def _delete_all(parts: Parts, pool_id: str, told: OnProgress) -> int:
    """Delete all passages and their vectors, and say that no message was looked at; return how many there were."""
    async with parts.database.tenant(pool_id) as connection:
        total = await passages.count(connection)
    deleted, numbers = 0, [0]
    while numbers:
        async with parts.database.tenant(pool_id) as connection:
            numbers = await passages.delete_some(connection, _MOST_PASSAGES)
            await vectors.delete(connection, "passage", numbers)
        if numbers:
            deleted += len(numbers)
            told(deleted, max(total, deleted))
    again = _MOST_SESSIONS
    while again == _MOST_SESSIONS:
        async with parts.database.tenant(pool_id) as connection:
            again = await passages.start_over(connection, _MOST_SESSIONS)
    return deleted
