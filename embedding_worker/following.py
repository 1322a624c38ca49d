"""Embeds pools that were moved to another model by command (`esker reembed`), whatever the worker's setting is."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from esker.server.core.errors import EskerError, Misconfigured
from esker.server.providers.embedders import make_embedder
from esker.server.providers.roles import Embedder
from esker.server.usecases.embed import chosen_settings
from esker.server.usecases.parts import Parts

log = logging.getLogger(__name__)

LOOK_SECONDS = 10.0

Serve = Callable[[Embedder], Awaitable[None]]


@asynccontextmanager
async def following(parts: Parts, stop: asyncio.Event, serve: Serve) -> AsyncGenerator[None]:
    """During the block, serve with each model that a command has chosen, except the one that this worker has itself.

    `serve` works with one embedder until `stop` is set.
    """
    task = asyncio.create_task(_follow(parts, stop, serve))
    try:
        yield
    finally:
        if not stop.is_set():
            task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _follow(parts: Parts, stop: asyncio.Event, serve: Serve) -> None:
    followed: set[str] = {parts.settings.embedder}
    async with asyncio.TaskGroup() as group:
        while not stop.is_set():
            try:
                chosen = await chosen_settings(parts)
            except EskerError as error:
                log.warning("cannot read which models were chosen by command: %s", error)
                chosen = set[str]()
            for setting in chosen - followed:
                followed.add(setting)
                group.create_task(_serve(parts, setting, serve))
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await stop.wait()


async def _serve(parts: Parts, setting: str, serve: Serve) -> None:
    try:
        embedder = make_embedder(parts.settings, setting)
        if embedder is None:
            return
        try:
            await serve(embedder)
        finally:
            await embedder.close()
    except Misconfigured as error:
        log.error("%s Pools that `esker reembed` moved to it get no vectors. %s", error, error.hint or "")
    except Exception:
        # A model that fails must not stop the others.
        log.exception("a model that was chosen by command cannot be used")
