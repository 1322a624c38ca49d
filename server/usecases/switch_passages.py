"""Switch the passages of a pool on or off. Off deletes them, not their messages; on cuts the messages again."""

from dataclasses import dataclass

from esker.server.store import audit, passages, vectors
from esker.server.usecases.authenticate import require_pool
from esker.server.usecases.cut_passages import OnProgress, cut_behind
from esker.server.usecases.parts import Parts

# Rows changed in one transaction, few enough that a request waiting for one of them does not notice.
_MOST_PASSAGES = 1_000
_MOST_SESSIONS = 1_000


@dataclass(frozen=True, slots=True)
class Switched:
    """The effect of a switch: how many sessions were cut, or how many passages were deleted."""

    on: bool
    sessions: int
    deleted: int


async def switch_passages(parts: Parts, pool: str, *, on: bool, on_progress: OnProgress) -> Switched:
    """Switch passages on or off. Calling it again finishes an interrupted switch. Raises NotFound."""
    found = await require_pool(parts, pool)
    async with parts.database.tenant(found.id) as connection:
        was_on = await passages.wanted(connection)
        if not on:
            await passages.switch(connection, on=False)
        await audit.insert(connection, "operator", "pool.set", found.id, {"passages": on}, parts.clock())
    # None are written while they are off, so those that exist are left over.
    deleted = 0 if on and was_on else await _delete_all(parts, found.id, on_progress)
    if not on:
        return Switched(on=False, sessions=0, deleted=deleted)
    async with parts.database.tenant(found.id) as connection:
        await passages.switch(connection, on=True)
    return Switched(on=True, sessions=await cut_behind(parts, found.id, on_progress), deleted=0)


async def _delete_all(parts: Parts, pool_id: str, on_progress: OnProgress) -> int:
    """Delete all passages and their vectors, and reset the progress of all sessions; return how many were deleted."""
    async with parts.database.tenant(pool_id) as connection:
        total = await passages.count(connection)
    deleted, numbers = 0, [0]
    while numbers:
        async with parts.database.tenant(pool_id) as connection:
            numbers = await passages.delete_some(connection, _MOST_PASSAGES)
            await vectors.delete(connection, "passage", numbers)
        if numbers:
            deleted += len(numbers)
            on_progress(deleted, max(total, deleted))
    reset = _MOST_SESSIONS
    while reset == _MOST_SESSIONS:
        async with parts.database.tenant(pool_id) as connection:
            reset = await passages.start_over(connection, _MOST_SESSIONS)
    return deleted
