"""The worker's loop. Clock ticks and notifications only wake it; the work is listed in the database."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from esker.embedding_worker.backfill import Backfill, Tell, ignore
from esker.embedding_worker.following import following
from esker.embedding_worker.waiting import either
from esker.server.core.errors import EmbedderDown, EskerError, Unavailable
from esker.server.core.records import Space
from esker.server.core.worker_health import LOADING, RUNNING, WAITING, state_line
from esker.server.db.listening import listening
from esker.server.providers.roles import Embedder
from esker.server.usecases.bring_forward import bring_rows_forward
from esker.server.usecases.build_vector_indexes import index_large_tiers, probe_indexes
from esker.server.usecases.embed import (
    PAUSE,
    calibrated,
    keep_up,
    make_space,
    register,
)
from esker.server.usecases.embed_rows import require_answer
from esker.server.usecases.end_leases import ending_abandoned_leases
from esker.server.usecases.parts import Parts

log = logging.getLogger(__name__)

POLL_SECONDS = 10
UPKEEP_SECONDS = 3_600


async def run_worker(parts: Parts, embedder: Embedder, stop: asyncio.Event, tell: Tell | None = None) -> None:
    """Embed due rows until `stop` is set; the current batch is finished first. `tell` takes lines about the worker.

    Pools use the model of `embedder`, unless another one was chosen for them by command. Raises Misconfigured when the
    embedder can never work.
    """

    async def serve_chosen(chosen: Embedder) -> None:
        await _serve(parts, chosen, stop, ignore, adopt=False)

    async with parts.database, ending_abandoned_leases(parts), following(parts, stop, serve_chosen):
        await _serve(parts, embedder, stop, tell or ignore, adopt=True)


async def _serve(parts: Parts, embedder: Embedder, stop: asyncio.Event, tell: Tell, *, adopt: bool) -> None:
    """Embed due rows with one model; with `adopt`, pools without a chosen model use it."""
    tell(state_line(LOADING))
    space = await _ready(parts, embedder, stop, tell, adopt=adopt)
    if space is None:
        return
    tell(state_line(RUNNING))
    wake, upkeep = asyncio.Event(), asyncio.Event()
    upkeep.set()
    async with _ticks(wake, upkeep), listening(parts.database.direct_url, "esker_embed", wake):
        await _work(parts, embedder, space, _WakeSignals(wake, upkeep, stop), tell, adopt=adopt)


@dataclass(frozen=True, slots=True)
class _WakeSignals:
    """Events that wake a loop: work may be due, upkeep is due, stop."""

    wake: asyncio.Event
    upkeep: asyncio.Event
    stop: asyncio.Event


async def _work(
    parts: Parts, embedder: Embedder, space: Space, signals: _WakeSignals, tell: Tell, *, adopt: bool
) -> None:
    wake, stop = signals.wake, signals.stop
    backfill = Backfill(parts, embedder, space, wake, tell)
    set_back = parts.database.clock.times_set_back
    try:
        while not stop.is_set():
            wake.clear()
            parts.pulse.beat(parts.clock())
            if set_back != parts.database.clock.times_set_back:
                set_back = parts.database.clock.times_set_back
                signals.upkeep.set()
            try:
                await _drain(parts, backfill, space, signals, adopt=adopt)
            except EmbedderDown as error:
                await _until_it_answers(parts, embedder, error, stop, tell)
            except EskerError as error:
                log.warning("embedding cannot go on now: %s", error)
            except Exception:
                # Claimed rows become due again when their lease ends; the attempt counts.
                log.exception("embedding cannot go on now")
            await either(wake, stop)
    finally:
        await backfill.close()


async def _drain(parts: Parts, backfill: Backfill, space: Space, signals: _WakeSignals, *, adopt: bool) -> None:
    """Start calls for all rows that are due, with upkeep in between; calls may still be open at the end."""
    more = True
    while more and not signals.stop.is_set():
        if adopt:
            await register(parts, space, or_retired=False)
        await index_large_tiers(parts)
        if signals.upkeep.is_set():
            await bring_rows_forward(parts, space)
            await keep_up(parts, space)
            await probe_indexes(parts)
            signals.upkeep.clear()
        more = await backfill.start_calls(signals.stop)


async def _until_it_answers(
    parts: Parts, embedder: Embedder, error: EmbedderDown, stop: asyncio.Event, tell: Tell = ignore
) -> None:
    """Wait until the embedder answers one text, asking once after each pause; or until `stop` is set."""
    down: EmbedderDown | None = error
    while down and not stop.is_set():
        parts.pulse.beat(parts.clock())
        log.warning("%s Pausing for %d s.", down, PAUSE.total_seconds())
        tell(state_line(WAITING, str(down)))
        await either(stop, seconds=PAUSE.total_seconds())
        try:
            await require_answer(embedder)
            down = None
        except EmbedderDown as still:
            down = still
    tell(state_line(RUNNING))


async def _ready(parts: Parts, embedder: Embedder, stop: asyncio.Event, tell: Tell, *, adopt: bool) -> Space | None:
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
            tell(state_line(WAITING, str(error)))
            await either(stop, seconds=PAUSE.total_seconds())
        else:
            log.info("embedding with %s, %d dimensions", space.model, space.dimension)
            return space
    return None


@asynccontextmanager
async def _ticks(wake: asyncio.Event, upkeep: asyncio.Event) -> AsyncGenerator[None]:
    """Wake the loop at intervals during the block. A jump of the machine's clock does not change them."""

    async def tick(seconds: float, *events: asyncio.Event) -> None:
        while True:
            await asyncio.sleep(seconds)
            for event in events:
                event.set()

    ticking = [asyncio.create_task(tick(POLL_SECONDS, wake)), asyncio.create_task(tick(UPKEEP_SECONDS, upkeep, wake))]
    try:
        yield
    finally:
        for task in ticking:
            task.cancel()
        await asyncio.gather(*ticking, return_exceptions=True)
