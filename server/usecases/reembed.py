"""Re-embed: move pools to another embedding model and back, while recall continues with the current one.

The vectors of the new model are made beside the old ones, with the queue and the steps of the embedding worker. All
progress is in the database, so a killed run continues where it stopped. Switching is one statement, and so is going
back, as long as the old vectors are not dropped.
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
    """An observer of the progress of a re-embedding."""

    def step(self, what: str, total: int, done: int) -> AbstractContextManager[Callable[[int], None]]:
        """Show a step of `total` texts while the block runs; the yielded function takes how many more are done."""
        ...

    def waits(self, why: str) -> None:
        """Show the reason for waiting."""
        ...


@dataclass(frozen=True, slots=True)
class SpaceStatus:
    """The coverage of a pool in one space. `missing` texts have no vector in it, counted from the texts themselves.

    Of these, `waiting` ones are queued, and `failed` ones were refused for good.
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
    """A pool that went back: the `model` that recall uses now, and the one that it `left` or stopped building.

    `queued` texts have no vector of `model` yet.
    """

    pool: str
    model: str
    setting: str
    left: str
    queued: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """A model whose vectors were deleted from a pool."""

    pool: str
    model: str
    vectors: int


@dataclass(frozen=True, slots=True)
class _ReembeddedPool:
    id: str
    name: str


async def status(parts: Parts, pool: str | None = None) -> list[SpaceStatus]:
    """Return the status of the spaces of all pools (or one), the one in use first. Raises NotFound."""
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
    """Move pools (or one) to the model of `embedder`; return the status of all their spaces.

    Recall uses the new model in a pool as soon as each of its texts has a vector or has failed. From then on, the
    setting of a worker does not change the pool's model. Raises Misconfigured, before anything is changed, for a model
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
    """Embed until each text of the pool has a vector or has failed."""
    async with parts.database.tenant(pool.id) as connection:
        texts = (await vectors.coverage(connection, space.name)).texts
        unfinished = await vectors.unfinished(connection, space.name)
    with watcher.step(f"Pool {pool.name} with {space.model}", texts, texts - unfinished) as advance:
        while unfinished:
            try:
                done = await embed_due(parts, embedder, space, pool.id)
                advance(done)
                if done == 0:
                    watcher.waits(f"{counted(unfinished, 'text is', 'texts are')} claimed by a worker or one that died")
                    await sleep(_LOOK_AGAIN_SECONDS)
            except EmbedderDown as error:
                watcher.waits(f"{error} Retrying in {PAUSE.total_seconds():.0f} s; finished texts are kept.")
                await sleep(PAUSE.total_seconds())
            async with parts.database.tenant(pool.id) as connection:
                unfinished = await vectors.unfinished(connection, space.name)


async def roll_back(parts: Parts, pool: str | None = None) -> list[WentBack]:
    """Return pools (or one) to their previous model, or stop building a new one.

    Texts without a vector of that model are queued. Raises InvalidInput if no pool can go back; NotFound.
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
    """Go back in one pool; return None, and change nothing, if there is nothing to go back to."""
    spaces = await vectors.spaces(connection)
    active = next((space for space in spaces if space.state == "active"), None)
    building = [space for space in spaces if space.state == "building"]
    before = [(space.left_at, space.name, space) for space in spaces if space.left_at and space.state == "retired"]
    if not active or not (building or before):
        return None
    target = active if building else max(before)[2]
    # Enqueue first: this locks texts, and the next statements lock queue rows.
    queued = await vectors.enqueue_missing(connection, target.name, parts.clock())
    if building:
        await vectors.give_up_building(connection)
    else:
        await vectors.activate(connection, target.name, parts.clock(), chosen=True)
    left = ", ".join(space.model for space in building or [active])
    return WentBack(pool.name, target.model, target.source, left, queued)


async def drop_retired(parts: Parts, pool: str | None = None) -> list[Dropped]:
    """Delete the vectors of the retired models of pools (or one); going back to these is then impossible.

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
