"""The worker's loop. Clock ticks and notifications only poke it; what there is to do is in the database."""

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
    """Embed what is due until `stop` is set; the batch in hand is finished first.

    Pools take to the model of `embedder`, unless another one was chosen for them by command: then they get their
    vectors from that. Raises Misconfigured when the embedder can never work.
    """

    async def serve_chosen(chosen: Embedder) -> None:
        await _serve(parts, chosen, stop, adopt=False)

    async with parts.database, following(parts, stop, serve_chosen):
        await _serve(parts, embedder, stop, adopt=True)


async def _serve(parts: Parts, embedder: Embedder, stop: asyncio.Event, *, adopt: bool) -> None:
    """Embed what is due with one model; with `adopt`, pools that have not chosen another one take to it."""
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
    """What a loop hears: there may be something to do, upkeep is due, stop."""

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
            log.warning("embedding has to wait: %s", error)
        except Exception:
            # What was claimed comes back when its lease ends, and counts as tried.
            log.exception("embedding has to wait")
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
    """Embed what is left in each pool: what came meanwhile, or one row to try again. Return whether there was any."""
    embedded = 0
    for pool_id in await pools_with_work(parts, space):
        if stop.is_set():
            break
        embedded += await embed_due(parts, embedder, space, pool_id)
        await switch_when_complete(parts, space, pool_id)
    return embedded > 0


async def _ready(parts: Parts, embedder: Embedder, stop: asyncio.Event, *, adopt: bool) -> Space | None:
    """Load the model and make its table, waiting for what is down; None when told to stop meanwhile."""
    while not stop.is_set():
        try:
            space = await embedder.load()
            await make_space(parts, space)
            space = await calibrated(embedder, space)
            if adopt:
                # Whoever starts a worker with a model that was in use before wants it back.
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
    """Poke the loop from time to time while the block runs."""

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
    """Wait until one of the events is set, or the time is over."""
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
