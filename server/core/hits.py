"""From what the two searches found to the hits of a recall: what is relevant, in which order, and how much fits."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache

from server.core.excerpts import excerpt
from server.core.ranking import prior, wording
from server.core.recalled import Hit, LeftOut, Reason, ScoreParts
from server.core.records import Memory, Passage, Source, Tier
from server.core.relevance import Scale, Signals, score
from server.core.rendering import recalled_line
from server.core.retelling import retells, retold_print
from server.core.similarity import Fingerprint, fingerprint, says_the_same
from server.core.sources import sources_of
from server.core.tokens import estimate_tokens, trim_to_tokens

# A query that has no answer with this relevance has none.
_ENOUGH = 1.0
# What goes along with an answer: at least half of what is enough, and not far below the best.
_LEAST = 0.5
_LEAST_OF_BEST = 0.35
# A memory goes before a passage that says as much: it is shorter, and what it says was found worth keeping.
_PASSAGE = 0.85
# Priors are worth less than any difference that means something.
_PRIOR = 0.001
# A first hit that does not fit is cut, but never to less than this.
_LEAST_CONTENT = 8
_PASSAGE_TOKENS = 300


@dataclass(frozen=True, slots=True)
class TextHit:
    """A text that one search found: its share of the query's words, or its cosine."""

    id: str
    number: int
    score: float


@dataclass(frozen=True, slots=True)
class Candidates:
    """What both searches know of one tier: ids in the order of each, signals by number, and how to measure them.

    `neighbours` of memories, by numbers, count as evidence; they may be candidates themselves.
    """

    tier: Tier
    scale: Scale
    keyword: Sequence[str] = ()
    vector: Sequence[str] = ()
    numbers: Mapping[str, int] = field(default_factory=dict[str, int])
    signals: Mapping[int, Signals] = field(default_factory=dict[int, Signals])
    neighbours: Mapping[int, Collection[int]] = field(default_factory=dict[int, Collection[int]])


@dataclass(frozen=True, slots=True)
class Texts:
    """The candidates themselves. `near` are cosines between memories, by pairs of ids in order.

    `again` says where else a memory was said, and `said_in` which messages it comes from in the end. Of `outdated`
    passages all that was kept holds no more.
    """

    memories: Mapping[str, Memory]
    passages: Mapping[str, Passage]
    near: Mapping[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    again: Mapping[str, Sequence[Source]] = field(default_factory=dict[str, Sequence[Source]])
    said_in: Mapping[str, Collection[tuple[str, int]]] = field(default_factory=dict[str, Collection[tuple[str, int]]])
    outdated: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its relevance, which orders, and what it is made of."""

    id: str
    tier: Tier
    relevance: float
    alone: float
    parts: ScoreParts


@dataclass(frozen=True, slots=True)
class Chosen:
    """The hits of a recall, best first, and the candidates that are none."""

    hits: list[Hit]
    left_out: list[LeftOut]


def ranked(candidates: Candidates, texts: Texts) -> list[Ranked]:
    """Return the candidates of a tier with their relevance, best first."""
    by_keyword = {text_id: rank for rank, text_id in enumerate(candidates.keyword, start=1)}
    by_vector = {text_id: rank for rank, text_id in enumerate(candidates.vector, start=1)}
    found: list[Ranked] = []
    for text_id, number in candidates.numbers.items():
        own = candidates.signals[number]
        around = candidates.scale.around(candidates.signals[other] for other in candidates.neighbours.get(number, ()))
        its_prior = _prior(texts.memories.get(text_id))
        worth = _PASSAGE if candidates.tier == "passage" else 1.0
        relevance = worth * candidates.scale.relevance(own, around) + _PRIOR * its_prior
        parts = ScoreParts(
            by_keyword.get(text_id),
            by_vector.get(text_id),
            round(own.keyword, 4),
            None if own.cosine is None else round(own.cosine, 4),
            round(around, 4),
            round(relevance, 4),
            round(its_prior, 4),
        )
        found.append(Ranked(text_id, candidates.tier, relevance, worth * candidates.scale.relevance(own), parts))
    return in_order(found)


def in_order(found: Iterable[Ranked]) -> list[Ranked]:
    """Return candidates best first; of equals the newest."""
    return sorted(sorted(found, key=lambda one: one.id, reverse=True), key=lambda one: -one.relevance)


def _prior(memory: Memory | None) -> float:
    return 0.0 if memory is None else prior(memory.kind, memory.priority)


def choose(found: Sequence[Ranked], texts: Texts, query_terms: Sequence[str], now: datetime) -> Chosen:
    """Return everything that is about the query, best first and each thing once.

    The query has an answer when one text is about it by itself; then what is not far below the best goes along.
    """
    left_out = [_left_out(one, "outdated") for one in found if one.id in texts.outdated]
    found = [one for one in found if one.id not in texts.outdated]
    best = max((one.alone for one in found), default=0.0)
    if best < _ENOUGH:
        return Chosen([], [*left_out, *(_left_out(one, "below the floor") for one in found)])
    least = max(_LEAST, _LEAST_OF_BEST * max(one.relevance for one in found))
    relevant = [one for one in found if one.relevance >= least]
    left_out += [
        _left_out(one, "far below the best" if one.relevance >= _LEAST else "below the floor")
        for one in found
        if one.relevance < least
    ]
    by_id = {one.id: one for one in relevant}
    hits: list[Hit] = []
    gathered = _alike([texts.memories[one.id] for one in relevant if one.tier == "memory"], texts.near)
    for stands, others in gathered:
        # What several rows say has the relevance of the best of them, whichever stands for them.
        rows = [stands, *others]
        relevance = max(by_id[row.id].relevance for row in rows)
        hits.append(_memory_hit(stands, others, texts, relevance, by_id[stands.id].parts, now))
        left_out += [_left_out(by_id[other.id], "says the same", stands.id) for other in others]
    for one in (one for one in relevant if one.tier == "passage"):
        passage = texts.passages[one.id]
        worth = _rounded_score(one.relevance)
        covering = next((hit for hit in hits if _covers(hit, passage, texts) and hit.score >= worth), None)
        if covering:
            covering.passages.append(passage.id)
            left_out.append(_left_out(one, "covered", covering.id))
        else:
            hits.append(_passage_hit(passage, one, query_terms, now))
    return Chosen(sorted(hits, key=lambda hit: -hit.score), left_out)


def _rounded_score(relevance: float) -> float:
    return round(score(relevance), 4)


def _left_out(one: Ranked, reason: Reason, by: str | None = None) -> LeftOut:
    return LeftOut(one.id, reason, by, one.parts)


def _covers(hit: Hit, passage: Passage, texts: Texts) -> bool:
    """Tell whether a memory was taken from a message of a passage."""
    return any(
        session_id == passage.session_id and passage.first_seq <= seq <= passage.last_seq
        for memory_id in (hit.id, *hit.same)
        for session_id, seq in texts.said_in.get(memory_id, ())
    )


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


def _memory_hit(
    row: Memory, others: Sequence[Memory], texts: Texts, relevance: float, parts: ScoreParts, now: datetime
) -> Hit:
    return Hit(
        id=row.id,
        tier="memory",
        content=row.content,
        kind=row.kind,
        priority=row.priority,
        category=row.category,
        trust=row.trust,
        score=_rounded_score(relevance),
        said_at=row.said_at,
        age=age(now - row.said_at),
        valid_until=row.valid_until,
        project=row.project,
        session_id=row.session_id,
        tags=row.tags,
        tentative=row.tentative,
        sources=[source for one in (row, *others) for source in sources_of(one, texts.again.get(one.id, ()))],
        same=[other.id for other in others],
        passages=[],
        superseded_by=row.superseded_by,
        truncated=False,
        parts=parts,
    )


def _passage_hit(passage: Passage, one: Ranked, query_terms: Sequence[str], now: datetime) -> Hit:
    content = excerpt(passage.text, query_terms, _PASSAGE_TOKENS)
    return Hit(
        id=passage.id,
        tier="passage",
        content=content,
        kind=None,
        priority=None,
        category=None,
        trust=passage.trust,
        score=_rounded_score(one.relevance),
        said_at=passage.said_to,
        age=age(now - passage.said_to),
        valid_until=None,
        project=passage.project,
        session_id=passage.session_id,
        tags=[],
        tentative=False,
        sources=[Source(passage.session_id, list(range(passage.first_seq, passage.last_seq + 1)), [])],
        same=[],
        passages=[],
        superseded_by=None,
        truncated=content != passage.text,
        parts=one.parts,
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
