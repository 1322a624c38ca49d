"""Retention: delete what a pool does not keep any longer, some at a time, each batch in a transaction of its own.

Only observed messages lose their words: a message that no observer has seen is kept whatever its age. Nothing comes
back to life: a row that was superseded by a deleted one stays superseded.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import partial

from esker.server.core.conversation.retention import Retained, Retention, without_images
from esker.server.core.errors import InvalidInput
from esker.server.core.json_input import Json
from esker.server.core.records import KINDS, Kind, Principal
from esker.server.db.database import Connection
from esker.server.store import audit, hidden_calls, memories, messages, packs, retention, sessions, vectors
from esker.server.usecases.authenticate import require_pool
from esker.server.usecases.cut_passages import leave_out_of_passages
from esker.server.usecases.in_each_pool import in_each_pool
from esker.server.usecases.parts import Parts

MOST_DAYS = 36_500
_BATCH = 500
"""Messages, passages or memories that are deleted in one transaction."""
# Tokens of a message with an image, which has more unless it is only an address.
_LEAST_TOKENS = 64


async def get_retention(parts: Parts, pool_id: str) -> Retention:
    """Return how long a pool keeps each kind of text."""
    async with parts.database.tenant(pool_id) as connection:
        return await retention.get(connection)


async def set_retention(parts: Parts, who: Principal, wanted: Retention) -> Retention:
    """Set how long a pool keeps each kind of text; the upkeep applies it within an hour. Raises InvalidInput."""
    days = [wanted.messages_days, wanted.images_days, wanted.passages_days, *wanted.memories_days.values()]
    if any(one is not None and not 1 <= one <= MOST_DAYS for one in days):
        raise InvalidInput(f"Days must be between 1 and {MOST_DAYS:,}.", hint="Leave out what is kept for ever.")
    if unknown := set(wanted.memories_days) - set(KINDS):
        raise InvalidInput(f"Unknown kind {min(unknown)!r}.", hint=f"Known are: {', '.join(KINDS)}.")
    async with parts.database.tenant(who.pool_id) as connection:
        await retention.store(connection, wanted)
        detail: dict[str, Json] = {**asdict(wanted), "memories_days": {**wanted.memories_days}}
        await audit.insert(connection, who.actor, "retention.set", who.pool_id, detail, parts.clock())
    return wanted


async def set_pool_retention(parts: Parts, pool: str, change: Callable[[Retention], Retention]) -> Retention:
    """Change how long the pool of this name keeps each kind of text. Raises NotFound, InvalidInput."""
    found = await require_pool(parts, pool)
    who = Principal(found.id, found.name, "operator", frozenset())
    return await set_retention(parts, who, change(await get_retention(parts, found.id)))


async def retain_all(parts: Parts) -> None:
    """Delete what the pools do not keep any longer."""
    await in_each_pool("retention", await retention.pools_with_one(parts.database), partial(retain, parts))


async def retain(parts: Parts, pool_id: str) -> Retained:
    """Delete what a pool does not keep any longer; return how much that was."""
    kept = await get_retention(parts, pool_id)
    before = partial(_before, parts.clock())
    done = Retained(
        messages=await _all_of(parts, pool_id, _forget_messages, before(kept.messages_days)),
        images=await _forget_images(parts, pool_id, before(kept.images_days)),
        passages=await _all_of(parts, pool_id, _forget_passages, before(kept.passages_days)),
        memories=sum(
            [
                await _all_of(parts, pool_id, partial(_forget_memories, kind), before(days))
                for kind, days in kept.memories_days.items()
            ]
        ),
    )
    if done.any:
        async with parts.database.tenant(pool_id) as connection:
            await audit.insert(connection, "upkeep", "retention", pool_id, asdict(done), parts.clock())
    return done


def _before(now: datetime, days: int | None) -> datetime | None:
    return None if days is None else now - timedelta(days=days)


Batch = Callable[[Parts, Connection, datetime], Awaitable[int]]


async def _all_of(parts: Parts, pool_id: str, forget_some: Batch, before: datetime | None) -> int:
    """Delete batches of what was said before a time until one is empty; return how much there was."""
    total = 0
    while before:
        async with parts.database.tenant(pool_id) as connection:
            count = await forget_some(parts, connection, before)
        if not count:
            break
        total += count
    return total


async def _forget_messages(parts: Parts, connection: Connection, before: datetime) -> int:
    old = await retention.old_messages(connection, before, _BATCH)
    await sessions.lock_all(connection, old.keys())
    await hidden_calls.delete_before(connection, before)
    blanked = sum([await messages.blank(connection, session_id, seqs) for session_id, seqs in old.items()])
    if blanked:
        cut = await leave_out_of_passages(parts, connection, old)
        await packs.lock_to_forget(connection)
        await hidden_calls.delete_showing(connection, cut)
    return blanked


async def _forget_passages(parts: Parts, connection: Connection, before: datetime) -> int:
    deleted = await retention.delete_old_passages(connection, before, _BATCH)
    await vectors.delete(connection, "passage", deleted.values())
    await packs.lock_to_forget(connection)
    await hidden_calls.delete_showing(connection, deleted.keys())
    return len(deleted)


async def _forget_memories(kind: Kind, parts: Parts, connection: Connection, before: datetime) -> int:
    old = await memories.lock_to_delete(connection, await retention.old_memories(connection, kind, before, _BATCH))
    numbers = await memories.delete(connection, old)
    await vectors.delete(connection, "memory", numbers)
    if old:
        await packs.delete_showing(connection, old)
        await hidden_calls.delete_showing(connection, old)
    return len(numbers)


async def _forget_images(parts: Parts, pool_id: str, before: datetime | None) -> int:
    """Replace the images of messages that were said before a time; return how many there were."""
    total, after = 0, ("", 0)
    while before:
        async with parts.database.tenant(pool_id) as connection:
            found = await retention.old_images(connection, before, _LEAST_TOKENS, after, _BATCH)
            if not found:
                break
            # They are read under the lock, since they may be forgotten or masked until then.
            await sessions.lock_all(connection, {session_id for session_id, _ in found})
            read = await retention.contents(connection, found)
            made = await asyncio.to_thread(_all_without_images, [content for _, _, content in read])
            changed = [(*read[i][:2], kept) for i, (kept, count) in enumerate(made) if count]
            await retention.replace_content(connection, changed)
        total += sum(count for _, count in made)
        after = found[-1]
    return total


def _all_without_images(contents: Sequence[Json]) -> list[tuple[Json, int]]:
    return [without_images(content) for content in contents]
