"""Recall: what the pool knows about a question, by keyword and by meaning, or the answer that it knows nothing."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from server.core.clock import as_utc
from server.core.errors import EmbedderDown, InvalidInput, TextRefused
from server.core.hits import Found, VectorHit, fitting, relevant_hits
from server.core.json_input import clean_text
from server.core.labels import without_label
from server.core.recalled import Recalled
from server.core.records import Filter, Kind, Priority, Ranking, Scope, at_least
from server.core.redaction import redact
from server.core.retelling import RETOLD
from server.core.terms import terms
from server.db.database import Connection
from server.store import memories, search, sessions, vectors
from server.store.vectors import PoolSpace
from server.usecases.parts import Parts

MAX_QUERY_CHARACTERS = 4_000
MAX_LIMIT = 50
MIN_TOKENS = 50
_CANDIDATES = 50
_MOST_TERMS = 100
_EMBED_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """A question to memory. Times filter by when a thing was said or what time it speaks of.

    Without a `scope` it is asked of the project that is named, and else of the pool. `ranking` chooses what the answer
    is ranked by: one of the two searches alone, both, or both and all else that is known; the others are there to be
    measured against.
    """

    query: str
    limit: int = 8
    scope: Scope | None = None
    session_id: str | None = None
    project: str | None = None
    kinds: Sequence[Kind] | None = None
    tags: Sequence[str] | None = None
    min_priority: Priority = "low"
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None
    include_superseded: bool = False
    max_tokens: int | None = None
    ranking: Ranking = "full"
    explain: bool = False


@dataclass(frozen=True, slots=True)
class _Semantic:
    """What the search by meaning has to work with: a vector in a space, or the reason why there is none."""

    space: str | None = None
    vector: Sequence[float] = ()
    reason: str | None = None


async def recall(parts: Parts, pool_id: str, asked: RecallRequest) -> Recalled:
    """Answer a question. Raises InvalidInput, also for a scope without its session or project; NotFound."""
    asked = _checked(asked)
    async with parts.database.tenant(pool_id) as connection:
        what = await _filter(connection, asked, parts.clock())
        unobserved = await sessions.unobserved_tokens(connection, what.session)
        space, pending = await _active_space(connection, parts)
    # A model may take its time, and no connection is held meanwhile.
    semantic = _Semantic()
    if asked.ranking != "keyword":
        semantic = await _embed(parts, space, without_label(asked.query) or asked.query)
    words = [] if asked.ranking == "vector" else _asked_terms(asked.query)
    async with parts.database.tenant(pool_id) as connection:
        found = await _search(connection, words, semantic, what)
    relevant = relevant_hits(found, parts.clock(), explain=asked.explain)
    hits = fitting(relevant[: asked.limit], asked.max_tokens)
    return Recalled(
        hits=hits,
        semantic="off" if asked.ranking == "keyword" else "ok" if semantic.space else "degraded",
        reason=semantic.reason,
        abstained=not relevant,
        omitted=len(relevant) - len(hits),
        pending=pending,
        unobserved_tokens=unobserved,
    )


def _checked(asked: RecallRequest) -> RecallRequest:
    """Return a request with its text cleaned, whoever sent it. Raises InvalidInput."""
    query = redact(clean_text(asked.query)).strip()
    if not query:
        raise InvalidInput("The query is blank.")
    if len(asked.query) > MAX_QUERY_CHARACTERS:
        raise InvalidInput(f"The query is longer than {MAX_QUERY_CHARACTERS:,} characters.")
    if not 1 <= asked.limit <= MAX_LIMIT:
        raise InvalidInput(f"limit is from 1 to {MAX_LIMIT}.")
    if asked.max_tokens is not None and asked.max_tokens < MIN_TOKENS:
        raise InvalidInput(f"max_tokens is at least {MIN_TOKENS}.")
    return replace(
        asked,
        query=query,
        project=redact(clean_text(asked.project)) if asked.project and asked.project.strip() else None,
        session_id=clean_text(asked.session_id) if asked.session_id else None,
    )


async def _filter(connection: Connection, asked: RecallRequest, now: datetime) -> Filter:
    """Resolve the scope. A scope that names nothing is an error, never an empty success."""
    scope = asked.scope or ("project" if asked.project else "pool")
    session = await sessions.get(connection, asked.session_id) if asked.session_id else None
    project = asked.project or (session.project if session else None)
    if scope == "session" and session is None:
        raise InvalidInput("scope 'session' needs a session_id.")
    if scope == "project" and project is None:
        raise InvalidInput("scope 'project' needs a project, or a session that has one.")
    return Filter(
        moment=now,
        session=session.id if session and scope == "session" else None,
        project=project if scope == "project" else None,
        kinds=asked.kinds,
        tags=asked.tags,
        priorities=at_least(asked.min_priority),
        since=as_utc(asked.since),
        until=as_utc(asked.until),
        as_of=as_utc(asked.as_of),
        with_superseded=asked.include_superseded,
    )


async def _active_space(connection: Connection, parts: Parts) -> tuple[PoolSpace | None, int]:
    """Return the space that recall uses in this pool, and how many rows have no vector in it yet."""
    active = next((space for space in await vectors.spaces(connection) if space.state == "active"), None)
    if active:
        return active, await vectors.waiting(connection, active.name)
    return None, await vectors.live_rows(connection) if parts.embedders else 0


async def _embed(parts: Parts, space: PoolSpace | None, query: str) -> _Semantic:
    if parts.embedders is None:
        return _Semantic(reason="no embedder is configured")
    if space is None:
        reason = parts.embedders.broken or "no embedding worker has looked at this pool yet"
        return _Semantic(reason=reason.rstrip("."))
    try:
        async with asyncio.timeout(_EMBED_SECONDS):
            vector = await parts.embedders.embed(space.source, space.name, query)
    except TimeoutError:
        return _Semantic(reason="the embedder did not answer in time")
    except (EmbedderDown, TextRefused) as error:
        return _Semantic(reason=str(error).rstrip("."))
    return _Semantic(space.name, vector)


async def _search(connection: Connection, words: Sequence[str], semantic: _Semantic, what: Filter) -> Found:
    keyword = await search.by_keyword(connection, words, what, _CANDIDATES)
    vector: list[VectorHit] = []
    cosines: dict[str, float] = {}
    if semantic.space:
        vector = await search.by_vector(connection, semantic.space, semantic.vector, what, _CANDIDATES)
        cosines = {hit.id: hit.cosine for hit in vector}
        missing = {hit.id for hit in keyword} - cosines.keys()
        cosines |= await search.cosines(connection, semantic.space, semantic.vector, missing)
    ids = {hit.id for hit in (*keyword, *vector)}
    rows = await memories.get(connection, ids)
    near = await search.near_pairs(connection, semantic.space, ids, RETOLD) if semantic.space else {}
    return Found(keyword, vector, cosines, rows, near, await memories.other_sources(connection, ids))


def _asked_terms(query: str) -> list[str]:
    """Return the terms to search by, each once; of a very long query the first ones."""
    return list(dict.fromkeys(terms(without_label(query))))[:_MOST_TERMS]
