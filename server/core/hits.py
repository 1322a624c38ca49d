"""From what the two searches found to the hits of a recall: what is relevant, in which order, and how much fits."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache

from server.core.ranking import Fused, fuse, prior, wording
from server.core.recalled import Hit, ScoreParts
from server.core.records import Memory, Source
from server.core.rendering import recalled_line
from server.core.retelling import retells, retold_print
from server.core.similarity import Fingerprint, fingerprint, says_the_same
from server.core.sources import sources_of
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
    """What both searches found, best first, with the rows and, for rows that have a vector, the cosines by id.

    `near` are the cosines between rows, by pairs of ids in order, and `again` where else a row was said.
    """

    keyword: Sequence[KeywordHit]
    vector: Sequence[VectorHit]
    cosines: Mapping[str, float]
    rows: Mapping[str, Memory]
    near: Mapping[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    again: Mapping[str, Sequence[Source]] = field(default_factory=dict[str, Sequence[Source]])


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
    hits: list[Hit] = []
    for stands, others in _alike([found.rows[row_id] for row_id in fused], found.near):
        rows = [stands, *others]
        # What several rows say has the score of the best of them, whichever stands for them.
        score = max(fused[row.id].score for row in rows)
        parts = _parts(fused[stands.id], coverage.get(stands.id, 0.0), found.cosines.get(stands.id), priors[stands.id])
        sources = [source for row in rows for source in sources_of(row, found.again.get(row.id, ()))]
        hits.append(_hit(stands, others, sources, score, now, parts if explain else None))
    return hits


def _alike(rows: Sequence[Memory], near: Mapping[tuple[str, str], float]) -> list[tuple[Memory, list[Memory]]]:
    """Return rows in order, each with those behind it that say the same; a live row stands for others."""
    marks = {row.id: fingerprint(row.content) for row in rows}
    retold = cache(retold_print)
    gathered: list[list[Memory]] = []
    for row in rows:
        for same in gathered:
            cosine = near.get((min(row.id, same[0].id), max(row.id, same[0].id)))
            if _same(row, same[0], marks, cosine) or _retold(row, same[0], retold, cosine):
                same.append(row)
                break
        else:
            gathered.append([row])
    chosen = ((next((row for row in same if row.superseded_at is None), same[0]), same) for same in gathered)
    return [(stands, [row for row in same if row.id != stands.id]) for stands, same in chosen]


def _same(row: Memory, first: Memory, marks: Mapping[str, Fingerprint], cosine: float | None) -> bool:
    return wording(row) == wording(first) or says_the_same(marks[row.id], marks[first.id], cosine)


def _retold(row: Memory, first: Memory, of: Callable[[str], Fingerprint], cosine: float | None) -> bool:
    """Tell whether a row tells the same as another in other small words, about the same project and as surely."""
    if cosine is None or (row.project, row.tentative) != (first.project, first.tentative):
        return False
    return retells(of(row.content), of(first.content), cosine)


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


def _hit(
    row: Memory,
    others: Sequence[Memory],
    sources: list[Source],
    score: float,
    now: datetime,
    parts: ScoreParts | None,
) -> Hit:
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
        tentative=row.tentative,
        sources=sources,
        same=[other.id for other in others],
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
