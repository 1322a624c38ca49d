"""The worker's loop. Clock ticks and notifications only wake it; the work is listed in the database."""

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from apscheduler.schedulers.asyncio import AsyncIOScheduler  # pyright: ignore[reportMissingTypeStubs]

from esker.embedding_worker.following import following
from esker.server.core.errors import EmbedderDown, EskerError, Unavailable
from esker.server.core.records import Space
from esker.server.db.database import listening
from esker.server.providers.roles import Embedder
from esker.server.usecases.build_vector_indexes import index_large_tiers, probe_indexes
from esker.server.usecases.embed import (
    PAUSE,
    calibrated,
    embed_due,
    embed_untried,
    keep_up,
    make_space,
    pools_with_work,
    register,
    switch_when_complete,
)
from esker.server.usecases.parts import Parts

log = logging.getLogger(__name__)

POLL_SECONDS = 10
UPKEEP_SECONDS = 3_600


async def run_worker(parts: Parts, embedder: Embedder, stop: asyncio.Event) -> None:
    """Embed due rows until `stop` is set; the current batch is finished first.

    Pools use the model of `embedder`, unless another one was chosen for them by command. Raises Misconfigured when the
    embedder can never work.
    """

    async def serve_chosen(chosen: Embedder) -> None:
        await _serve(parts, chosen, stop, adopt=False)

    async with parts.database, following(parts, stop, serve_chosen):
        await _serve(parts, embedder, stop, adopt=True)


async def _serve(parts: Parts, embedder: Embedder, stop: asyncio.Event, *, adopt: bool) -> None:
    """Embed due rows with one model; with `adopt`, pools without a chosen model use it."""
    space = await _ready(parts, embedder, stop, adopt=adopt)
    if space is None:
        return
    wake, upkeep = asyncio.Event(), asyncio.Event()
    upkeep.set()
    with _ticks(wake, upkeep):
        async with listening(parts.database.url, "esker_embed", wake):
            await _work(parts, embedder, space, _WakeSignals(wake, upkeep, stop), adopt=adopt)


@dataclass(frozen=True, slots=True)
class _WakeSignals:
    """Events that wake a loop: work may be due, upkeep is due, stop."""

    wake: asyncio.Event
    upkeep: asyncio.Event
    stop: asyncio.Event


async def _work(parts: Parts, embedder: Embedder, space: Space, signals: _WakeSignals, *, adopt: bool) -> None:
    wake, stop = signals.wake, signals.stop
    while not stop.is_set():
        wake.clear()
        try:
            await _drain(parts, embedder, space, signals, adopt=adopt)
        except EmbedderDown as error:
            log.warning("%s Pausing for %d s.", error, PAUSE.total_seconds())
            await _either(stop, seconds=PAUSE.total_seconds())
        except EskerError as error:
            log.warning("embedding cannot go on now: %s", error)
        except Exception:
            # Claimed rows become due again when their lease ends; the attempt counts.
            log.exception("embedding cannot go on now")
        await _either(wake, stop)


async def _drain(parts: Parts, embedder: Embedder, space: Space, signals: _WakeSignals, *, adopt: bool) -> None:
    busy = True
    while busy and not signals.stop.is_set():
        if adopt:
            await register(parts, space, or_retired=False)
        await index_large_tiers(parts)
        if signals.upkeep.is_set():
            await keep_up(parts, space)
            await probe_indexes(parts)
            signals.upkeep.clear()
        await embed_untried(parts, embedder, space, signals.stop)
        busy = await _embed_others(parts, embedder, space, signals.stop)


async def _embed_others(parts: Parts, embedder: Embedder, space: Space, stop: asyncio.Event) -> bool:
    """Embed the rest of each pool: new rows, or one row to retry. Return whether any row was embedded."""
    embedded = 0
    for pool_id in await pools_with_work(parts, space):
        if stop.is_set():
            break
        embedded += await embed_due(parts, embedder, space, pool_id)
        await switch_when_complete(parts, space, pool_id)
    return embedded > 0


async def _ready(parts: Parts, embedder: Embedder, stop: asyncio.Event, *, adopt: bool) -> Space | None:
    """Load the model and create its table, retrying while a part is down; None when `stop` was set meanwhile."""
    while not stop.is_set():
        try:
            space = await embedder.load()
            await make_space(parts, space)
            space = await calibrated(embedder, space)
            if adopt:
                # A worker that is started with a retired model brings it back into use.
                await register(parts, space, or_retired=True)
        except Unavailable as error:
            log.warning("%s Trying again in %d s.", error, PAUSE.total_seconds())
            await _either(stop, seconds=PAUSE.total_seconds())
        else:
            log.info("embedding with %s, %d dimensions", space.model, space.dimension)
            return space
    return None


@contextmanager
def _ticks(wake: asyncio.Event, upkeep: asyncio.Event) -> Generator[None]:
    """Wake the loop at intervals during the block."""

    def tick() -> None:
        wake.set()

    def upkeep_tick() -> None:
        upkeep.set()
        wake.set()

    scheduler: Any = AsyncIOScheduler(timezone=UTC)  # the library has no types
    scheduler.add_job(tick, "interval", seconds=POLL_SECONDS)
    scheduler.add_job(upkeep_tick, "interval", seconds=UPKEEP_SECONDS)
    scheduler.start()
    try:
        yield
    finally:
        scheduler.shutdown(wait=False)


async def _either(*events: asyncio.Event, seconds: float | None = None) -> None:
    """Wait until one of the events is set or the time has passed."""
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
