"""Embed rows that have no vector: the steps of the embedding worker, each in a transaction of its own."""

import asyncio
import logging
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice

from esker.server.core.errors import EmbedderDown, EskerError, TextRefused
from esker.server.core.recall.calibration import calibrate, calibration_texts
from esker.server.core.records import Space
from esker.server.core.redaction import error_text
from esker.server.core.text.labels import without_label
from esker.server.providers.roles import Embedder
from esker.server.store import pools, vectors
from esker.server.store.vectors import ClaimedBatch, ClaimedRow
from esker.server.usecases.parts import Parts

log = logging.getLogger(__name__)

BATCH = 64
_ROUND = 100
"""Batches after which a long backfill pauses for new pools, upkeep and retries."""
MAX_ATTEMPTS = 8
PAUSE = timedelta(seconds=60)
"""How long the worker does not call a provider that was down."""
_COOLDOWN = timedelta(minutes=5)
_LONGEST_COOLDOWN = timedelta(hours=1)
_LEASE = timedelta(minutes=5)
"""How long a claim lasts. A batch waits for the one before it, and each may take a provider's longest call."""


@dataclass(frozen=True, slots=True)
class _Claimed:
    """Rows of one pool that this worker has claimed."""

    pool_id: str
    batch: ClaimedBatch


@dataclass(slots=True)
class _EmbeddedRows:
    """Embedded rows with the vectors of the parts of each, and refused rows with the reason."""

    rows: list[ClaimedRow] = field(default_factory=list[ClaimedRow])
    vectors: list[list[list[float]]] = field(default_factory=list[list[list[float]]])
    refused: list[tuple[ClaimedRow, str]] = field(default_factory=list[tuple[ClaimedRow, str]])

    def add(self, other: "_EmbeddedRows") -> None:
        """Add the result of other rows."""
        self.rows += other.rows
        self.vectors += other.vectors
        self.refused += other.refused


async def embed_untried(parts: Parts, embedder: Embedder, space: Space, stop: asyncio.Event) -> None:
    """Embed untried rows of all pools until none are left, `stop` is set or the round is over. Pools take turns.

    While the model works on a batch, the vectors of the one before are stored and the next one is claimed. Raises
    EmbedderDown; claimed rows are then released untried.
    """
    turns: deque[str] = deque()
    seen: set[str] = set()
    storing: asyncio.Task[None] | None = None
    claiming = asyncio.create_task(_claim_next(parts, space, turns))
    try:
        for _ in range(_ROUND):
            claimed = await claiming
            if claimed is None or stop.is_set():
                break
            claiming = asyncio.create_task(_claim_next(parts, space, turns))
            made = await _embed_or_release(parts, embedder, claimed)
            if storing:
                await storing
            storing = asyncio.create_task(_keep(parts, claimed, made))
            seen.add(claimed.pool_id)
    finally:
        try:
            await _give_back_next(parts, claiming)
        finally:
            if storing:
                await storing
    # Only now: a claimed row is not finished.
    for pool_id in seen:
        await switch_when_complete(parts, space, pool_id)


async def embed_due(parts: Parts, embedder: Embedder, space: Space, pool_id: str) -> int:
    """Embed one batch of a pool; return how many rows got a vector or were refused, 0 when nothing is due.

    Raises EmbedderDown; the batch is then released untried.
    """
    # A row that failed before, or killed its worker, is retried alone, so that no other row fails with it.
    claimed = await _claim(parts, space, pool_id, tried=False) or await _claim(parts, space, pool_id, tried=True)
    if claimed is None:
        return 0
    await _keep(parts, claimed, await _embed_or_release(parts, embedder, claimed))
    return len(claimed.batch.rows)


async def _claim_next(parts: Parts, space: Space, turns: deque[str]) -> _Claimed | None:
    """Claim a batch of the next pool that has untried rows; None if no pool has any."""
    if not turns:
        turns.extend(await pools_with_work(parts, space))
    while turns:
        if claimed := await _claim(parts, space, turns.popleft(), tried=False):
            return claimed
    return None


async def _claim(parts: Parts, space: Space, pool_id: str, *, tried: bool) -> _Claimed | None:
    now = parts.clock()
    async with parts.database.tenant(pool_id) as connection:
        if tried:
            await vectors.bury(connection, space.name, MAX_ATTEMPTS, now)
        limit = 1 if tried else BATCH
        batch = await vectors.claim(connection, space.name, now, _LEASE, tried=tried, limit=limit)
    return _Claimed(pool_id, batch) if batch.rows else None


async def _embed_or_release(parts: Parts, embedder: Embedder, claimed: _Claimed) -> _EmbeddedRows:
    try:
        return await _embed(embedder, claimed.batch.rows)
    except EmbedderDown as error:
        await _give_back(parts, claimed, error_text(error), parts.clock() + PAUSE)
        raise


async def _embed(embedder: Embedder, rows: list[ClaimedRow]) -> _EmbeddedRows:
    """Embed the parts of all rows together; if one is refused, embed row by row, so that only its row fails."""
    split = await embedder.split([without_label(row.content) for row in rows])
    texts = [text for row_parts in split for text in row_parts]
    try:
        embedded = [
            vector for n in range(0, len(texts), BATCH) for vector in await embedder.embed(texts[n : n + BATCH])
        ]
        vectors_in_order = iter(embedded)
        return _EmbeddedRows(rows, [list(islice(vectors_in_order, len(row_parts))) for row_parts in split])
    except TextRefused as error:
        if len(rows) == 1:
            return _EmbeddedRows(refused=[(rows[0], error_text(error))])
    made = _EmbeddedRows()
    for row in rows:
        made.add(await _embed(embedder, [row]))
    return made


async def _keep(parts: Parts, claimed: _Claimed, made: _EmbeddedRows) -> None:
    async with parts.database.tenant(claimed.pool_id) as connection:
        await vectors.store(connection, claimed.batch, made.rows, made.vectors, parts.clock())
    for row, error in made.refused:
        dead = row.attempts >= MAX_ATTEMPTS
        log.warning("%s has no vector%s: %s", row.id, " for good" if dead else " yet", error)
        again = parts.clock() + cooldown(row.attempts)
        # One transaction each: locking several queue rows in this order could deadlock.
        async with parts.database.tenant(claimed.pool_id) as connection:
            await vectors.fail(connection, claimed.batch, row, error, again, dead=dead)


async def _give_back_next(parts: Parts, claiming: "asyncio.Task[_Claimed | None]") -> None:
    """Release the batch that was claimed ahead; if that fails, its lease expires."""
    with suppress(EskerError):
        if claimed := await claiming:
            await _give_back(parts, claimed, None, parts.clock())


async def _give_back(parts: Parts, claimed: _Claimed, error: str | None, not_before: datetime) -> None:
    async with parts.database.tenant(claimed.pool_id) as connection:
        await vectors.release(connection, claimed.batch, error, not_before)


def cooldown(attempts: int) -> timedelta:
    """Return how long to wait after so many failures of a row: 5 minutes, doubling up to an hour."""
    return min(_LONGEST_COOLDOWN, _COOLDOWN * 2 ** min(attempts - 1, 8))


async def pools_with_work(parts: Parts, space: Space) -> list[str]:
    """Return the pools that have rows to embed now."""
    return await vectors.pools_with_work(parts.database, space.name, parts.clock())


async def make_space(parts: Parts, space: Space) -> None:
    """Create the table of a space, if it is missing."""
    await vectors.create_space(parts.database, space)


async def calibrated(embedder: Embedder, space: Space) -> Space:
    """Return a space with its measured calibration. Raises EmbedderDown."""
    asked, answered = calibration_texts()
    try:
        questions, answers = await embedder.embed_queries(asked), await embedder.embed(answered)
    except TextRefused as error:
        log.warning("the cosines of %s cannot be calibrated: %s", space.model, error)
        return space
    return replace(space, calibration=calibrate(questions, answers))


async def register(parts: Parts, space: Space, *, or_retired: bool) -> None:
    """Add the space to every pool that lacks it (with `or_retired`: or has retired it), and queue its rows.

    Pools whose model was chosen by command keep that model.
    """
    for pool_id in await vectors.pools_without(parts.database, space, or_retired=or_retired):
        async with parts.database.tenant(pool_id) as connection:
            await vectors.register_space(connection, space, parts.clock())
            queued = await vectors.enqueue_missing(connection, space.name, parts.clock())
        log.info("pool %s: %d rows to embed with %s", pool_id, queued, space.model)
        await switch_when_complete(parts, space, pool_id)


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
