"""Re-embed: pools go over to another embedding model, while recall goes on with the one they have; and back.

The vectors of the new model are made beside the old ones, with the queue and the steps of the embedding worker. What is
done is in the database at every moment, so whoever is killed begins again where it stopped. The switch is one
statement. The old vectors stay, so that going back is one statement, too, until they are dropped.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from esker.server.core.counts import counted
from esker.server.core.errors import EmbedderDown, InvalidInput
from esker.server.core.records import TIERS, Space
from esker.server.db.database import Connection
from esker.server.providers.roles import Embedder
from esker.server.store import pools, vector_indexes, vectors
from esker.server.store.vectors import Coverage, PoolSpace, SpaceState
from esker.server.usecases.authenticate import require_pool
from esker.server.usecases.embed import PAUSE, calibrated, embed_due, make_space, switch_when_complete
from esker.server.usecases.parts import Parts

log = logging.getLogger(__name__)

_LOOK_AGAIN_SECONDS = 1.0


class Watcher(Protocol):
    """Whoever watches a re-embedding."""

    def step(self, what: str, total: int, done: int) -> AbstractContextManager[Callable[[int], None]]:
        """Show a step of so many texts while the block runs; what it yields is told how many more are done."""
        ...

    def waits(self, why: str) -> None:
        """Show what is waited for."""
        ...


@dataclass(frozen=True, slots=True)
class SpaceStatus:
    """How a pool stands with one space; `missing` texts have no vector in it, counted from the texts themselves.

    Of those, `waiting` ones stand in the queue, and `failed` ones were refused for good.
    """

    pool: str
    space: str
    model: str
    dimension: int
    setting: str
    state: SpaceState
    chosen: bool
    texts: int
    missing: int
    waiting: int
    failed: int


@dataclass(frozen=True, slots=True)
class WentBack:
    """What going back meant for a pool: the model that recall uses now, and which one it left or gave up building.

    So many texts were `queued`, since they have no vector of that model yet.
    """

    pool: str
    model: str
    setting: str
    left: str
    queued: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """A model whose vectors a pool does not keep any more."""

    pool: str
    model: str
    vectors: int


@dataclass(frozen=True, slots=True)
class _ReembeddedPool:
    id: str
    name: str


async def status(parts: Parts, pool: str | None = None) -> list[SpaceStatus]:
    """Return how pools stand with the spaces that they have, the one in use first. Raises NotFound."""
    found: list[SpaceStatus] = []
    for each in await _pools(parts, pool):
        async with parts.database.tenant(each.id) as connection:
            spaces = sorted(await vectors.spaces(connection), key=lambda space: space.state)
            found += [_status(each, space, await vectors.coverage(connection, space.name)) for space in spaces]
    return found


def _status(pool: _ReembeddedPool, space: PoolSpace, covered: Coverage) -> SpaceStatus:
    return SpaceStatus(
        pool=pool.name,
        space=space.name,
        model=space.model,
        dimension=space.dimension,
        setting=space.source,
        state=space.state,
        chosen=space.chosen,
        texts=covered.texts,
        missing=covered.missing,
        waiting=covered.waiting,
        failed=covered.failed,
    )


async def reembed(
    parts: Parts,
    embedder: Embedder,
    watcher: Watcher,
    pool: str | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> list[SpaceStatus]:
    """Have pools (or one) go over to the model of `embedder`, and return how they stand with all their spaces.

    Recall uses the new model in each pool as soon as all its texts have vectors, or a reason why not. From then on the
    setting of a worker does not take it to another model. Raises Misconfigured, before anything is changed, for a model
    that cannot be loaded or has too many dimensions; EmbedderDown when it cannot be reached at all; NotFound.
    """
    wanted = await _pools(parts, pool)
    space = await calibrated(embedder, await embedder.load())
    await make_space(parts, space)
    for each in wanted:
        async with parts.database.tenant(each.id) as connection:
            await vectors.register_space(connection, space, parts.clock(), chosen=True)
            await vectors.enqueue_missing(connection, space.name, parts.clock())
        await _build(parts, embedder, space, each, watcher, sleep)
        await switch_when_complete(parts, space, each.id)
    return await status(parts, pool)


async def _build(
    parts: Parts,
    embedder: Embedder,
    space: Space,
    pool: _ReembeddedPool,
    watcher: Watcher,
    sleep: Callable[[float], Awaitable[None]],
) -> None:
    """Embed until every text of the pool has a vector or a reason why not."""
    async with parts.database.tenant(pool.id) as connection:
        texts = (await vectors.coverage(connection, space.name)).texts
        unfinished = await vectors.unfinished(connection, space.name)
    with watcher.step(f"Pool {pool.name} with {space.model}", texts, texts - unfinished) as advance:
        while unfinished:
            try:
                done = await embed_due(parts, embedder, space, pool.id)
                advance(done)
                if done == 0:
                    watcher.waits(f"{counted(unfinished, 'text is', 'texts are')} with a worker, or with one that died")
                    await sleep(_LOOK_AGAIN_SECONDS)
            except EmbedderDown as error:
                watcher.waits(f"{error} Trying again in {PAUSE.total_seconds():.0f} s; what is done stays done.")
                await sleep(PAUSE.total_seconds())
            async with parts.database.tenant(pool.id) as connection:
                unfinished = await vectors.unfinished(connection, space.name)


async def roll_back(parts: Parts, pool: str | None = None) -> list[WentBack]:
    """Have pools (or one) use the model again that they used before, or give up one that is being built.

    What has no vector of that model yet is queued. Raises InvalidInput when no pool has a way back; NotFound.
    """
    went: list[WentBack] = []
    for each in await _pools(parts, pool):
        async with parts.database.tenant(each.id) as connection:
            await vectors.lock_spaces(connection)
            if back := await _go_back(parts, connection, each):
                await vectors.wake(connection)
                went.append(back)
    if not went:
        raise InvalidInput(
            "There is no model to go back to.", hint="`esker reembed --status` lists the models whose vectors are kept."
        )
    return went


async def _go_back(parts: Parts, connection: Connection, pool: _ReembeddedPool) -> WentBack | None:
    """Go back in one pool; return None, and change nothing, without a way back."""
    spaces = await vectors.spaces(connection)
    active = next((space for space in spaces if space.state == "active"), None)
    building = [space for space in spaces if space.state == "building"]
    before = [(space.left_at, space.name, space) for space in spaces if space.left_at and space.state == "retired"]
    if not active or not (building or before):
        return None
    now = active if building else max(before)[2]
    # Queued first: that locks texts, and what follows locks places in the queue.
    queued = await vectors.enqueue_missing(connection, now.name, parts.clock())
    if building:
        await vectors.give_up_building(connection)
    else:
        await vectors.activate(connection, now.name, parts.clock(), chosen=True)
    left = ", ".join(space.model for space in building or [active])
    return WentBack(pool.name, now.model, now.source, left, queued)


async def drop_retired(parts: Parts, pool: str | None = None) -> list[Dropped]:
    """Delete the vectors of models that pools (or one) do not use any more; there is no way back then.

    Raises NotFound.
    """
    dropped: list[Dropped] = []
    for each in await _pools(parts, pool):
        async with parts.database.tenant(each.id) as connection:
            await vectors.lock_spaces(connection)
            for space in await vectors.spaces(connection):
                if space.state == "retired":
                    for tier in TIERS:
                        await vector_indexes.drop(connection, space.name, tier)
                    count = await vectors.delete_retired(connection, space.name)
                    dropped.append(Dropped(each.name, space.model, count))
    return dropped


async def _pools(parts: Parts, name: str | None) -> list[_ReembeddedPool]:
    if name is None:
        return [_ReembeddedPool(pool.id, pool.name) for pool in await pools.listed(parts.database)]
    found = await require_pool(parts, name)
    return [_ReembeddedPool(found.id, found.name)]
