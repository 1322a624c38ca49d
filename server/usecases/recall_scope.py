"""The first reads of a recall: its scope, the sizes of the tiers, and how much is not ready yet.

A recall that asks no model searches in the same transaction.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from esker.server.core.records import Filter, Tier
from esker.server.core.similar_projects import UnknownProject
from esker.server.db.database import Connection
from esker.server.db.pipeline import known, send
from esker.server.db.replica import log_position
from esker.server.store import projects, search, sessions, vectors
from esker.server.store.search import Size
from esker.server.store.vectors import PoolSpace
from esker.server.usecases.find_projects import unknown_project
from esker.server.usecases.parts import Parts
from esker.server.usecases.query_embedding import active_of
from esker.server.usecases.recall_request import RecallRequest, resolved
from esker.server.usecases.term_counts import PoolTermCounts


@dataclass(frozen=True, slots=True)
class RecallScope:
    """The resolved scope of a request: filters, time zone, space, counts of common words, and of texts not ready yet.

    `unknown` is the requested project if nothing belongs to it. `position`: all that was written before the request is
    in the database's log up to here, if there is a replica. `connection` is the one that read all this, if the texts
    are searched in the same transaction.
    """

    pool_id: str
    request: RecallRequest
    now: datetime
    row_filter: Filter
    timezone: str
    space: PoolSpace | None
    sizes: Mapping[Tier, Size]
    counts: PoolTermCounts
    pending: int
    unobserved: int
    unknown: UnknownProject | None
    position: str | None
    connection: Connection | None


async def resolve_scope(parts: Parts, pool_id: str, request: RecallRequest, held: AsyncExitStack) -> RecallScope:
    """Resolve the scope in a transaction of its own, or in one that goes on until `held` is closed."""
    now, bound = parts.clock(), parts.database.project
    pending = parts.pending.recent(pool_id, bound, now)
    connection = await held.enter_async_context(parts.database.moment_pipeline(pool_id))
    row_filter, session = await resolved(connection, request, now)
    unobserved = await send(connection, sessions.unobserved_tokens(row_filter.session))
    spaces = await send(connection, vectors.all_spaces())
    waiting = await send(connection, vectors.waiting()) if pending is None else known(pending)
    is_known = await send(connection, projects.is_known(row_filter.project)) if row_filter.project else known(True)
    sizes = await send(connection, search.sizes(row_filter))
    position = await send(connection, log_position()) if parts.database.replica else known(None)
    going_on = None if _has_to_wait(parts, request) else connection
    if going_on is None:
        await held.aclose()
    session_timezone = (await session).timezone if session else "UTC"
    space = active_of(parts, await spaces)
    if pending is None:
        count = await waiting if space else await _without_space(parts, pool_id, going_on)
        pending = parts.pending.keep(pool_id, bound, now, count)
    return RecallScope(
        pool_id=pool_id,
        request=request,
        now=now,
        row_filter=row_filter,
        timezone=request.timezone or session_timezone,
        space=space,
        sizes=await sizes,
        counts=parts.term_counts.in_pool(pool_id, bound, now),
        pending=pending,
        unobserved=await unobserved,
        unknown=None if await is_known else await _unknown_project(parts, pool_id, row_filter.project, going_on),
        position=await position,
        connection=going_on,
    )


def _has_to_wait(parts: Parts, request: RecallRequest) -> bool:
    """Whether a recall waits for a model or a replica before it searches; it holds no connection meanwhile."""
    asks_model = request.ranking != "keyword" and (parts.embedders or parts.paraphrases)
    return bool(asks_model or parts.database.replica)


@asynccontextmanager
async def searching(parts: Parts, scope: RecallScope) -> AsyncGenerator[Connection]:
    """Open a transaction in which texts are searched, unless the one of the scope goes on."""
    if scope.connection:
        yield scope.connection
        return
    async with parts.database.moment_since(scope.pool_id, scope.position) as connection:
        yield connection


@asynccontextmanager
async def _pool_connection(parts: Parts, pool_id: str, going_on: Connection | None) -> AsyncGenerator[Connection]:
    if going_on:
        yield going_on
        return
    async with parts.database.tenant(pool_id) as connection:
        yield connection


async def _without_space(parts: Parts, pool_id: str, going_on: Connection | None) -> int:
    """Return how many rows have no vector yet in a pool without a space."""
    if not parts.embedders:
        return 0
    async with _pool_connection(parts, pool_id, going_on) as connection:
        return await vectors.live_rows(connection)


async def _unknown_project(
    parts: Parts, pool_id: str, project: str | None, going_on: Connection | None
) -> UnknownProject | None:
    async with _pool_connection(parts, pool_id, going_on) as connection:
        return await unknown_project(connection, project)
