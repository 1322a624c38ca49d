"""Embed rows that have no vector: the steps of the embedding worker, each in a transaction of its own."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, aclosing, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from esker.server.core.errors import EmbedderDown, TextRefused
from esker.server.core.recall.calibration import calibrate, calibration_texts
from esker.server.core.records import Space
from esker.server.core.redaction import error_text
from esker.server.db.database import Connection
from esker.server.providers.roles import Embedder
from esker.server.store import pools, vectors
from esker.server.store.vectors import ClaimedBatch
from esker.server.usecases.embed_rows import BATCH, EmbeddedRows, embed_rows, in_batches
from esker.server.usecases.parts import Parts

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 8
PAUSE = timedelta(seconds=60)
"""How long the worker does not call a provider that was down."""
_COOLDOWN = timedelta(minutes=5)
LONGEST_COOLDOWN = timedelta(hours=1)
"""How long a row waits at most after a failure."""
_LEASE = timedelta(minutes=5)
"""How long a claim lasts: longer than to isolate a row that makes a provider hang."""
_RESERVE = timedelta(minutes=2)
"""When only this long is left of a claim, rows that are not begun are released: their attempt must not count."""


@dataclass(frozen=True, slots=True)
class ClaimedRows:
    """Rows of one pool that this worker has claimed.

    A retry is a single row that failed before. `due_since` is the due time of the last row in the queue, and `until`
    the end of the claim.
    """

    pool_id: str
    batch: ClaimedBatch
    is_retry: bool
    due_since: datetime
    until: datetime


async def embed_due(parts: Parts, embedder: Embedder, space: Space, pool_id: str) -> int:
    """Embed one batch of a pool; return how many rows got a vector or were refused, 0 when nothing is due.

    Raises EmbedderDown; rows without a result are then released untried.
    """
    claimed = await claim(parts, space, pool_id, tried=False) or await claim(parts, space, pool_id, tried=True)
    if claimed is None:
        return 0
    await embed_claimed(parts, embedder, claimed, nullcontext())
    return len(claimed.batch.rows)


async def claim(parts: Parts, space: Space, pool_id: str, *, tried: bool) -> ClaimedRows | None:
    """Claim a batch of rows that were not tried before, or one that was; None if none is due."""
    now = parts.clock()
    async with parts.database.tenant(pool_id) as connection:
        if tried:
            await vectors.bury(connection, space.name, MAX_ATTEMPTS, now)
        # A row that failed before, or killed its worker, is retried alone, so that no other row fails with it.
        limit = 1 if tried else BATCH
        since = await vectors.due_since(connection, space.name, now)
        batch = await vectors.claim(
            connection, space.name, now, _LEASE, tried=tried, limit=limit, token=parts.holder.token()
        )
    return ClaimedRows(pool_id, batch, tried, since or now, now + _LEASE) if batch.rows else None


async def embed_claimed(
    parts: Parts,
    embedder: Embedder,
    claimed: ClaimedRows,
    lane: AbstractContextManager[None],
    stored: Callable[[int], None] | None = None,
) -> None:
    """Embed claimed rows and store their vectors. `lane` is left when the embedder has done its part.

    `stored` is called with the number of rows of each portion whose vectors were stored.

    If the embedder is down (EmbedderDown) or the task is cancelled, rows without a result are released untried.
    """
    try:
        await _embed_and_keep(parts, embedder, claimed, lane, stored)
    except EmbedderDown as error:
        await _give_back(parts, claimed, error_text(error), parts.clock() + PAUSE)
        raise
    except asyncio.CancelledError:
        await release(parts, claimed)
        raise


async def _embed_and_keep(
    parts: Parts,
    embedder: Embedder,
    claimed: ClaimedRows,
    lane: AbstractContextManager[None],
    stored: Callable[[int], None] | None,
) -> None:
    storing: set[asyncio.Task[None]] = set()
    is_late = False
    try:
        with lane:
            _set_patience(parts, embedder, claimed)
            async with aclosing(embed_rows(embedder, claimed.batch.rows)) as portions:
                async for made in portions:
                    storing.add(asyncio.create_task(_keep(parts, claimed, made, stored)))
                    _set_patience(parts, embedder, claimed)
                    if is_late := parts.clock() > claimed.until - _RESERVE:
                        break
    finally:
        await asyncio.gather(*storing)
    if is_late:
        await release(parts, claimed)


def _set_patience(parts: Parts, embedder: Embedder, claimed: ClaimedRows) -> None:
    """Let other processes go first, unless these rows have waited too long."""
    waited = parts.clock() - claimed.due_since
    embedder.be_patient(waited < timedelta(seconds=parts.settings.embed_patience_seconds))


async def _keep(parts: Parts, claimed: ClaimedRows, made: EmbeddedRows, stored: Callable[[int], None] | None) -> None:
    if made.rows:
        async with parts.database.tenant(claimed.pool_id) as connection:
            await vectors.store(connection, claimed.batch, made.rows, made.vectors, parts.clock())
        if stored:
            stored(len(made.rows))
    for row, error in made.refused:
        dead = row.attempts >= MAX_ATTEMPTS
        log.warning("%s has no vector%s: %s", row.id, " for good" if dead else " yet", error)
        again = parts.clock() + cooldown(row.attempts)
        async with parts.database.tenant(claimed.pool_id) as connection:
            await vectors.fail(connection, claimed.batch, row, error, again, dead=dead)


async def release(parts: Parts, claimed: ClaimedRows) -> None:
    """Release claimed rows untried."""
    await _give_back(parts, claimed, None, parts.clock())


async def _give_back(parts: Parts, claimed: ClaimedRows, error: str | None, not_before: datetime) -> None:
    async with parts.database.tenant(claimed.pool_id) as connection:
        await vectors.release(connection, claimed.batch, error, not_before)


def cooldown(attempts: int) -> timedelta:
    """Return how long to wait after a number of failures of a row: 5 minutes, doubling up to an hour."""
    return min(LONGEST_COOLDOWN, _COOLDOWN * 2 ** min(attempts - 1, 8))


async def pools_with_work(parts: Parts, space: Space) -> list[str]:
    """Return the pools that have rows to embed now."""
    return await vectors.pools_with_work(parts.database, space.name, parts.clock())


async def make_space(parts: Parts, space: Space) -> None:
    """Create the table of a space, if it is missing."""
    await vectors.create_space(parts.database, space)


async def calibrated(embedder: Embedder, space: Space) -> Space:
    """Return a space with its calibration, which is measured unless it is known. Raises EmbedderDown."""
    if space.calibration:
        return space
    asked, answered = calibration_texts()
    try:
        questions = await in_batches(embedder.embed_queries, asked)
        answers = await in_batches(embedder.embed, answered)
    except TextRefused as error:
        log.warning("the cosines of %s cannot be calibrated: %s", space.model, error)
        return space
    return replace(space, calibration=calibrate(questions, answers))


async def register(parts: Parts, space: Space, *, or_retired: bool) -> None:
    """Add the space to every pool that lacks it (with `or_retired`: or has retired it), and queue its rows.

    Pools whose model was chosen by command keep that model. So do all pools with a model if the setting of this worker
    is only the default: a new version of Esker with another default must not embed everything again.
    """
    for pool_id in await vectors.pools_without(parts.database, space, or_retired=or_retired):
        async with parts.database.tenant(pool_id) as connection:
            if not parts.settings.names_embedder and (kept := await _keep_model(connection, space)):
                log.info("pool %s keeps %s; `esker reembed` would move it to %s", pool_id, kept, space.model)
                continue
            await vectors.register_space(connection, space, parts.clock())
            queued = await vectors.enqueue_missing(connection, space.name, parts.clock())
        log.info("pool %s: %d rows to embed with %s", pool_id, queued, space.model)
        await switch_when_complete(parts, space, pool_id)


async def _keep_model(connection: Connection, space: Space) -> str | None:
    """Choose the model that the pool uses, and return it; None if it has none, or an older version of this one."""
    await vectors.lock_spaces(connection)
    active = next((there for there in await vectors.spaces(connection) if there.state == "active"), None)
    if active is None or active.source == space.source:
        return None
    await vectors.choose_active(connection)
    return active.model


async def switch_when_complete(parts: Parts, space: Space, pool_id: str) -> None:
    """Switch recall to a space that was built beside another, once each row has a vector or failed at least once."""
    async with parts.database.tenant(pool_id) as connection:
        building = {there.name for there in await vectors.spaces(connection) if there.state == "building"}
        if space.name in building and not await vectors.unfinished(connection, space.name):
            await vectors.activate(connection, space.name, parts.clock())
            log.info("pool %s: recall uses %s now", pool_id, space.model)


async def chosen_settings(parts: Parts) -> set[str]:
    """Return the embedder settings of the models that were chosen by command."""
    return set(await vectors.chosen_sources(parts.database))


async def keep_up(parts: Parts, space: Space) -> None:
    """Queue missed rows and delete vectors whose rows are gone, in the pools that use or build the space."""
    for pool_id in await pools.ids(parts.database):
        async with parts.database.tenant(pool_id) as connection:
            await vectors.lock_spaces(connection)
            wanted = {there.name for there in await vectors.spaces(connection) if there.state != "retired"}
            if space.name not in wanted:
                continue
            await vectors.recalibrate(connection, space)
            queued = await vectors.enqueue_missing(connection, space.name, parts.clock())
            orphans = await vectors.delete_orphans(connection, space.name)
        if queued or orphans:
            log.info("pool %s: queued %d missed rows, deleted %d vectors without a row", pool_id, queued, orphans)
