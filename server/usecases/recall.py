"""Recall: what the pool knows about a question, by keyword and by meaning, or the answer that it knows nothing."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from server.core.errors import EmbedderDown, InvalidInput, TextRefused
from server.core.ranking import distinct, fuse, prior
from server.core.recalled import Hit, Recalled, ScoreParts, Sources
from server.core.records import PRIORITIES, Filter, Kind, Memory, Priority, Scope
from server.core.redaction import redact
from server.core.terms import terms
from server.core.tokens import estimate_tokens
from server.db.database import Connection
from server.store import memories, search, sessions, vectors
from server.usecases.parts import Parts

MAX_LIMIT = 50
_CANDIDATES = 50
_MOST_TERMS = 100
_EMBED_SECONDS = 2.0
# Evidence that a row is about the query, as shares of what is enough by itself: the cosine, which between unrelated
# texts stays below 0.25 with the bundled MiniLM, and the share of the query's information that stands in the row.
_ENOUGH_COSINE = 0.25
_ENOUGH_COVERAGE = 0.3
# A row that has no vector, or a query that has none, is judged by keywords alone.
_ENOUGH_COVERAGE_ALONE = 0.15


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """A question to memory. Times filter by when a thing was said or what time it speaks of."""

    query: str
    limit: int = 8
    scope: Scope = "pool"
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
    explain: bool = False


@dataclass(frozen=True, slots=True)
class _Query:
    """The query's vector and its space, or the reason why there is none."""

    space: str | None
    vector: list[float]
    reason: str | None


@dataclass(frozen=True, slots=True)
class _Found:
    """What both searches found, by id."""

    keyword: list[search.KeywordHit]
    vector: list[search.VectorHit]
    cosines: Mapping[str, float]
    rows: Mapping[str, Memory]


async def recall(parts: Parts, pool_id: str, asked: RecallRequest) -> Recalled:
    """Answer a question. Raises InvalidInput for a scope without its session or project, NotFound for the session."""
    query = redact(asked.query)
    embedded = await _embed(parts, query)
    async with parts.database.tenant(pool_id) as connection:
        what = await _filter(connection, asked)
        usable, pending = await _usable_space(connection, parts, embedded)
        found = await _search(connection, query, usable, what)
    hits = _hits(found, asked, parts.clock())
    return Recalled(
        hits=hits,
        semantic="ok" if usable.space else "degraded",
        reason=usable.reason,
        abstained=not hits,
        pending=pending,
    )


async def _embed(parts: Parts, query: str) -> _Query:
    embedder = parts.embedder
    if embedder is None:
        return _Query(None, [], "no embedder is configured")
    if embedder.space is None:
        return _Query(None, [], "the embedding model is still loading")
    try:
        async with asyncio.timeout(_EMBED_SECONDS):
            [vector] = await embedder.embed([embedder.space.prefix + query])
    except TimeoutError:
        return _Query(None, [], "the embedder did not answer in time")
    except (EmbedderDown, TextRefused) as error:
        return _Query(None, [], str(error))
    return _Query(embedder.space.name, vector, None)


async def _filter(connection: Connection, asked: RecallRequest) -> Filter:
    """Resolve the scope. A scope that names nothing is an error, never an empty success."""
    session_id, project = asked.session_id, asked.project
    if session_id is not None:
        session = await sessions.get(connection, session_id)
        project = project or session.project
    if asked.scope == "session" and session_id is None:
        raise InvalidInput("scope 'session' needs a session_id.")
    if asked.scope == "project" and project is None:
        raise InvalidInput("scope 'project' needs a project, or a session that has one.")
    return Filter(
        session=session_id if asked.scope == "session" else None,
        project=project if asked.scope == "project" else asked.project,
        kinds=asked.kinds,
        tags=asked.tags,
        priorities=PRIORITIES[: PRIORITIES.index(asked.min_priority) + 1],
        since=asked.since,
        until=asked.until,
        as_of=asked.as_of,
        with_superseded=asked.include_superseded,
    )


async def _usable_space(connection: Connection, parts: Parts, query: _Query) -> tuple[_Query, int]:
    """Return the query as this pool can use it, and how many rows have no vector for it yet."""
    active = next((space.name for space in await vectors.spaces(connection) if space.state == "active"), None)
    if active is None:
        pending = await vectors.live_rows(connection) if parts.embedder else 0
        return replace(query, space=None, reason=query.reason or "the embedding worker has not started yet"), pending
    if query.space and query.space != active:
        query = replace(query, space=None, reason="the pool's vectors are being made anew for another model")
    return query, await vectors.waiting(connection, active)


async def _search(connection: Connection, query: str, embedded: _Query, what: Filter) -> _Found:
    keyword = await search.by_keyword(connection, _asked_terms(query), what, _CANDIDATES)
    vector: list[search.VectorHit] = []
    cosines: dict[str, float] = {}
    if embedded.space:
        vector = await search.by_vector(connection, embedded.space, embedded.vector, what, _CANDIDATES)
        cosines = {hit.id: hit.cosine for hit in vector}
        missing = {hit.id for hit in keyword} - cosines.keys()
        cosines |= await search.cosines(connection, embedded.space, embedded.vector, missing)
    rows = await memories.get(connection, {hit.id for hit in (*keyword, *vector)})
    return _Found(keyword, vector, cosines, rows)


def _asked_terms(query: str) -> list[str]:
    """Return the terms to search by, each once; of a very long query the first ones."""
    return list(dict.fromkeys(terms(query)))[:_MOST_TERMS]


def _relevant(coverage: float, cosine: float | None) -> bool:
    if cosine is None:
        return coverage >= _ENOUGH_COVERAGE_ALONE
    return coverage / _ENOUGH_COVERAGE + cosine / _ENOUGH_COSINE >= 1


def _hits(found: _Found, asked: RecallRequest, now: datetime) -> list[Hit]:
    coverage = {hit.id: hit.coverage for hit in found.keyword}
    priors = {row.id: prior(row.kind, row.priority) for row in found.rows.values()}
    relevant = {i for i in found.rows if _relevant(coverage.get(i, 0.0), found.cosines.get(i))}
    keyword = [hit.id for hit in found.keyword if hit.id in relevant]
    vector = [hit.id for hit in found.vector if hit.id in relevant]
    fused = {candidate.id: candidate for candidate in fuse(keyword, vector, priors)}
    order = distinct(found.rows[row_id] for row_id in fused)
    hits: list[Hit] = []
    spent = 0
    for row_id in order[: asked.limit]:
        row, candidate = found.rows[row_id], fused[row_id]
        spent += estimate_tokens(row.content)
        if asked.max_tokens is not None and spent > asked.max_tokens:
            break
        parts = ScoreParts(
            candidate.keyword_rank,
            candidate.vector_rank,
            round(coverage.get(row_id, 0.0), 4),
            round(found.cosines[row_id], 4) if row_id in found.cosines else None,
            round(priors[row_id], 4),
        )
        hits.append(_hit(row, candidate.score, now, parts if asked.explain else None))
    return hits


def _hit(row: Memory, score: float, now: datetime, parts: ScoreParts | None) -> Hit:
    return Hit(
        id=row.id,
        content=row.content,
        kind=row.kind,
        priority=row.priority,
        category=row.category,
        trust=row.trust,
        score=round(score, 4),
        said_at=row.said_at,
        age=age(now - row.said_at),
        project=row.project,
        session_id=row.session_id,
        tags=row.tags,
        sources=Sources(row.session_id, row.source_seqs, row.source_ids),
        superseded_by=row.superseded_by,
        parts=parts,
    )


def age(since: timedelta) -> str:
    """Return an age in words: the largest unit of which there are at least two, so that nothing reads as one year."""
    hours = since / timedelta(hours=1)
    for unit, length in (
        ("years", 24 * 365),
        ("months", 24 * 30),
        ("weeks", 24 * 7),
        ("days", 24),
        ("hours", 1),
    ):
        if hours >= 2 * length:
            return f"{int(hours // length)} {unit} ago"
    return "just now" if hours < 1 else "1 hour ago"
