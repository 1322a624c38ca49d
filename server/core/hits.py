"""From what the two searches found to the hits of a recall: what is relevant, in which order, and how much fits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from server.core.ranking import Fused, distinct, fuse, prior, wording
from server.core.recalled import Hit, ScoreParts, Sources
from server.core.records import Memory
from server.core.rendering import recalled_line
from server.core.tokens import estimate_tokens, trim_to_tokens

# Evidence that a row is about the query, as shares of what is enough by itself: the cosine, which between unrelated
# texts stays below 0.25 with the bundled MiniLM, and the share of the query's information that stands in the row.
_ENOUGH_COSINE = 0.25
_ENOUGH_COVERAGE = 0.3
# A row that has no vector, or a query that has none, is judged by keywords alone.
_ENOUGH_COVERAGE_ALONE = 0.15
# A row that shares less than this with the query keeps its place by meaning; the keywords say nothing for it.
_LEAST_COVERAGE = 0.25
# A first hit that does not fit is cut, but never to less than this.
_LEAST_CONTENT = 8


@dataclass(frozen=True, slots=True)
class KeywordHit:
    """A row that shares terms with the query. `coverage` is the share (0 to 1) of the query's information in it."""

    id: str
    coverage: float


@dataclass(frozen=True, slots=True)
class VectorHit:
    """A row near the query; `cosine` is from -1 to 1."""

    id: str
    cosine: float


@dataclass(frozen=True, slots=True)
class Found:
    """What both searches found, best first, with the rows and, for rows that have a vector, the cosines by id."""

    keyword: Sequence[KeywordHit]
    vector: Sequence[VectorHit]
    cosines: Mapping[str, float]
    rows: Mapping[str, Memory]


def relevant_hits(found: Found, now: datetime, *, explain: bool) -> list[Hit]:
    """Return everything that is about the query, best first and each wording once."""
    coverage = {hit.id: hit.coverage for hit in found.keyword}
    relevant = {i for i in found.rows if _relevant(coverage.get(i, 0.0), found.cosines.get(i))}
    keyword = [
        hit.id
        for hit in found.keyword
        if hit.id in relevant and (hit.id not in found.cosines or hit.coverage >= _LEAST_COVERAGE)
    ]
    vector = [hit.id for hit in found.vector if hit.id in relevant]
    priors = {row.id: prior(row.kind, row.priority) for row in found.rows.values()}
    fused = {candidate.id: candidate for candidate in fuse(keyword, vector, priors)}
    # A wording has the score of its best row, whichever of its rows stands for it.
    best: dict[str, float] = {}
    for row_id, candidate in fused.items():
        best.setdefault(wording(found.rows[row_id]), candidate.score)
    hits: list[Hit] = []
    for row_id in distinct(found.rows[row_id] for row_id in fused):
        parts = _parts(fused[row_id], coverage.get(row_id, 0.0), found.cosines.get(row_id), priors[row_id])
        row = found.rows[row_id]
        hits.append(_hit(row, best[wording(row)], now, parts if explain else None))
    return hits


def _relevant(coverage: float, cosine: float | None) -> bool:
    if cosine is None:
        return coverage >= _ENOUGH_COVERAGE_ALONE
    return coverage / _ENOUGH_COVERAGE + cosine / _ENOUGH_COSINE >= 1


def _parts(candidate: Fused, coverage: float, cosine: float | None, its_prior: float) -> ScoreParts:
    return ScoreParts(
        candidate.keyword_rank,
        candidate.vector_rank,
        round(coverage, 4),
        None if cosine is None else round(cosine, 4),
        round(its_prior, 4),
    )


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
        valid_until=row.valid_until,
        project=row.project,
        session_id=row.session_id,
        tags=row.tags,
        sources=Sources(row.session_id, row.source_seqs, row.source_ids),
        superseded_by=row.superseded_by,
        truncated=False,
        parts=parts,
    )


def fitting(hits: Sequence[Hit], max_tokens: int | None) -> list[Hit]:
    """Return the hits whose lines fit into `max_tokens`, in order; one that does not makes room for the next.

    The first is the best answer, so it is cut rather than left out.
    """
    if max_tokens is None or not hits:
        return list(hits)
    return [*_fitting((_cut(hits[0], max_tokens), *hits[1:]), max_tokens)]


def _fitting(hits: Sequence[Hit], budget: int) -> Iterator[Hit]:
    for hit in hits:
        cost = estimate_tokens(recalled_line(hit))
        if cost <= budget:
            budget -= cost
            yield hit


def _cut(hit: Hit, budget: int) -> Hit:
    excess = estimate_tokens(recalled_line(hit)) - budget
    if excess <= 0:
        return hit
    cut = replace(hit, content="", truncated=True)
    room = budget - estimate_tokens(recalled_line(cut))
    return replace(cut, content=trim_to_tokens(hit.content, room)) if room >= _LEAST_CONTENT else hit


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
