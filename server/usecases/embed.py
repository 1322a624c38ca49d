"""Embed: rows without a vector get one. The steps of the embedding worker, each in a transaction of its own."""

import logging
from dataclasses import replace
from datetime import timedelta

from server.core.calibration import calibrate, calibration_texts
from server.core.errors import EmbedderDown, TextRefused
from server.core.labels import without_label
from server.core.records import Space
from server.core.redaction import error_text
from server.providers.roles import Embedder
from server.store import pools, vectors
from server.store.vectors import Batch, ClaimedRow
from server.usecases.parts import Parts

log = logging.getLogger(__name__)

BATCH = 64
MAX_ATTEMPTS = 8
PAUSE = timedelta(seconds=60)
"""How long the worker leaves a provider alone after an error of its own."""
_COOLDOWN = timedelta(minutes=5)
_LONGEST_COOLDOWN = timedelta(hours=1)
_LEASE = timedelta(minutes=2)


async def embed_due(parts: Parts, embedder: Embedder, space: Space, pool_id: str) -> int:
    """Embed one batch of a pool and return how many rows got a vector or a reason why not; 0 when nothing is due.

    Raises EmbedderDown; the batch is then given back untried.
    """
    now = parts.clock()
    async with parts.database.tenant(pool_id) as connection:
        await vectors.bury(connection, space.name, MAX_ATTEMPTS, now)
        batch = await vectors.claim(connection, space.name, now, _LEASE, tried=False, limit=BATCH)
        if not batch.rows:
            # What failed before, or killed its worker, is tried alone, so that it takes no other row with it.
            batch = await vectors.claim(connection, space.name, now, _LEASE, tried=True, limit=1)
    if not batch.rows:
        return 0
    try:
        await _embed(parts, embedder, space, pool_id, batch, batch.rows)
    except EmbedderDown as error:
        async with parts.database.tenant(pool_id) as connection:
            await vectors.release(connection, batch, error_text(error), parts.clock() + PAUSE)
        raise
    return len(batch.rows)


async def _embed(
    parts: Parts, embedder: Embedder, space: Space, pool_id: str, batch: Batch, rows: list[ClaimedRow]
) -> None:
    """Embed rows together; when one of them is refused, one by one, so that it harms no other."""
    try:
        made = await embedder.embed([space.prefix + without_label(row.content) for row in rows])
    except TextRefused as error:
        if len(rows) > 1:
            for row in rows:
                await _embed(parts, embedder, space, pool_id, batch, [row])
            return
        await _refused(parts, pool_id, batch, rows[0], error_text(error))
        return
    async with parts.database.tenant(pool_id) as connection:
        await vectors.store(connection, batch, rows, [[vector] for vector in made], parts.clock())


async def _refused(parts: Parts, pool_id: str, batch: Batch, row: ClaimedRow, error: str) -> None:
    dead = row.attempts >= MAX_ATTEMPTS
    log.warning("%s has no vector%s: %s", row.id, " for good" if dead else " yet", error)
    async with parts.database.tenant(pool_id) as connection:
        again = parts.clock() + cooldown(row.attempts)
        await vectors.fail(connection, batch, row, error, again, dead=dead)


def cooldown(attempts: int) -> timedelta:
    """Return how long a row rests after so many failures: 5 minutes, doubling to an hour."""
    return min(_LONGEST_COOLDOWN, _COOLDOWN * 2 ** min(attempts - 1, 8))


async def pools_with_work(parts: Parts, space: Space) -> list[str]:
    """Return the pools that have rows to embed now."""
    return await vectors.pools_with_work(parts.database, space.name, parts.clock())


async def make_space(parts: Parts, space: Space) -> None:
    """Make the table of a space, if it is not there."""
    await vectors.create_space(parts.database, space)


async def calibrated(embedder: Embedder, space: Space) -> Space:
    """Return a space with what its cosines are worth. Raises EmbedderDown."""
    asked, answered = ([space.prefix + text for text in texts] for texts in calibration_texts())
    try:
        questions, answers = await embedder.embed(asked), await embedder.embed(answered)
    except TextRefused as error:
        log.warning("what cosines of %s are worth cannot be measured: %s", space.model, error)
        return space
    return replace(space, calibration=calibrate(questions, answers))


async def register(parts: Parts, space: Space, *, or_retired: bool) -> None:
    """Make the space known to every pool that does not know it or, if asked, has retired it, and queue their rows."""
    for pool_id in await vectors.pools_without(parts.database, space.name, or_retired=or_retired):
        async with parts.database.tenant(pool_id) as connection:
            await vectors.register_space(connection, space, parts.clock())
            queued = await vectors.enqueue_missing(connection, space.name, parts.clock())
        log.info("pool %s: %d rows to embed with %s", pool_id, queued, space.model)
        await switch_when_complete(parts, space, pool_id)


async def switch_when_complete(parts: Parts, space: Space, pool_id: str) -> None:
    """Have recall use a space that was built beside another, as soon as every row was tried in it."""
    async with parts.database.tenant(pool_id) as connection:
        building = {there.name for there in await vectors.spaces(connection) if there.state == "building"}
        if space.name in building and not await vectors.untried(connection, space.name):
            await vectors.activate(connection, space.name)
            log.info("pool %s: recall uses %s now", pool_id, space.model)


async def keep_up(parts: Parts, space: Space) -> None:
    """Queue rows that slipped through, and delete vectors whose rows are gone."""
    for pool_id in await pools.ids(parts.database):
        async with parts.database.tenant(pool_id) as connection:
            await vectors.recalibrate(connection, space)
            queued = await vectors.enqueue_missing(connection, space.name, parts.clock())
            orphans = await vectors.delete_orphans(connection, space.name)
        if queued or orphans:
            log.info("pool %s: %d rows had slipped through, %d vectors had no row", pool_id, queued, orphans)
