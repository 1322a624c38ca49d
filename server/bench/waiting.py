"""Waiting for vectors: until a server and its worker have loaded the model, and until notes have theirs."""

import asyncio
from time import perf_counter

from esker.server.bench.bench_server import BenchServer, ask
from esker.server.core.errors import Unavailable
from esker.server.usecases.query_embedding import active_space

_LOOK_SECONDS = 0.05
_STALLED_SECONDS = 600.0


async def until_ready(place: BenchServer) -> None:
    """Wait until the server's recall uses vectors. Raises Unavailable when it does not begin to."""
    gives_up = perf_counter() + _STALLED_SECONDS
    while (answer := (await ask(place.client, "/v1/recall", {"query": "anything"})).json())["semantic"] == "degraded":
        if perf_counter() > gives_up:
            raise Unavailable(f"The measured server does not use vectors: {answer['reason']}.")
        await asyncio.sleep(_LOOK_SECONDS)


async def until_embedded(place: BenchServer) -> None:
    """Wait until all notes have their vectors. Raises Unavailable when there is no progress."""
    last, moved = 0, perf_counter()
    while pending := await _pending(place):
        if pending != last:
            last, moved = pending, perf_counter()
        if perf_counter() - moved > _STALLED_SECONDS:
            raise Unavailable(f"{pending} notes have no vector, and the number does not fall.")
        await asyncio.sleep(_LOOK_SECONDS)


async def _pending(place: BenchServer) -> int:
    async with place.parts.database.tenant(place.pool_id) as connection:
        _, pending = await active_space(connection, place.parts)
    return pending
