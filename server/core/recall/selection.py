"""From what the two searches found to the hits of a recall: what is relevant, in which order, each thing once."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache

from esker.server.core.clock import age
from esker.server.core.dates.window import Window, closeness
from esker.server.core.facts.retelling import retold_print, say_the_same
from esker.server.core.facts.similarity import fingerprint
from esker.server.core.ranking import prior
from esker.server.core.recall.answer import Hit, LeftOutCandidate, LeftOutReason, ScoreParts
from esker.server.core.recall.relevance import Scale, Signals, score
from esker.server.core.records import Memory, Passage, Source, Tier
from esker.server.core.sources import sources_of
from esker.server.core.text import labels
from esker.server.core.text.excerpts import excerpt
from esker.server.core.text.folding import same_words_key

# A query that has no answer with this relevance has none.
_ENOUGH = 1.0
# What goes along with an answer: at least half of what is enough, and not far below the best.
_LEAST = 0.5
_LEAST_OF_BEST = 0.35
# A memory goes before a passage that says as much: it is shorter, and what it says was found worth keeping. So this
# counts of what a passage has above what is enough; what is enough stays enough.
_PASSAGE = 0.85
# What was taken from a passage and is about as good an answer stands for it.
_AS_GOOD = 0.75
# What was said in the time that a question speaks of, or is about it, counts this much more; the second where the
# question is sure of its time.
_TIME = 0.6
_FIRM_TIME = 1.5
# What somebody once asked shares its words with a question about the same, and seldom answers it.
_QUESTION = 0.6
# Who asks for nothing but a time gets what there is from it.
_TIME_ALONE = 2.0
# Priors are worth less than any difference that means something.
_PRIOR = 0.001
_PASSAGE_TOKENS = 300


@dataclass(frozen=True, slots=True)
class TextHit:
    """A text that one search found: its share of the query's words, or its cosine.

    `named` says that it holds an identifier of the query that few others hold.
    """

    id: str
    number: int
    score: float
    named: bool = False


@dataclass(frozen=True, slots=True)
class Candidates:
    """What both searches know of one tier: ids in the order of each, signals by number, and how to measure them.

    `neighbours` of memories, by numbers, count as evidence; they may be candidates themselves. `tokens` are how long
    those are that have any.
    """

    tier: Tier
    scale: Scale
    keyword: Sequence[str] = ()
    vector: Sequence[str] = ()
    numbers: Mapping[str, int] = field(default_factory=dict[str, int])
    signals: Mapping[int, Signals] = field(default_factory=dict[int, Signals])
    neighbours: Mapping[int, Collection[int]] = field(default_factory=dict[int, Collection[int]])
    tokens: Mapping[int, int] = field(default_factory=dict[int, int])


@dataclass(frozen=True, slots=True)
class CandidateTexts:
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
class RankedCandidate:
    """A candidate with its relevance, which orders, and what it is made of.

    `alone` is the evidence for it without what stands around it, as a multiple of what is enough to be an answer.
    """

    id: str
    tier: Tier
    relevance: float
    alone: float
    parts: ScoreParts


@dataclass(frozen=True, slots=True)
class Chosen:
    """The hits of a recall, best first, and the candidates that are none; so many of those whoever asks has `seen`."""

    hits: list[Hit]
    left_out: list[LeftOutCandidate]
    seen: int = 0


def ranked(candidates: Candidates) -> list[RankedCandidate]:
    """Return the candidates of a tier with their relevance, best first."""
    by_keyword = {text_id: rank for rank, text_id in enumerate(candidates.keyword, start=1)}
    by_vector = {text_id: rank for rank, text_id in enumerate(candidates.vector, start=1)}
    found: list[RankedCandidate] = []
    for text_id, number in candidates.numbers.items():
        own = candidates.signals[number]
        beside = [candidates.signals[other] for other in candidates.neighbours.get(number, ())]
        around = candidates.scale.around(beside, candidates.tokens[number]) if beside else 0.0
        relevance = _worth(candidates.tier, candidates.scale.relevance(own, around))
        parts = ScoreParts(
            by_keyword.get(text_id),
            by_vector.get(text_id),
            round(own.keyword, 4),
            None if own.cosine is None else round(own.cosine, 4),
            round(around, 4),
            0.0,
            round(relevance, 4),
            0.0,
            named=own.named,
        )
        found.append(RankedCandidate(text_id, candidates.tier, relevance, candidates.scale.relevance(own), parts))
    return in_order(found)


def told_in_time(tier: Tier, ids: Iterable[str]) -> list[RankedCandidate]:
    """Return texts as answers to a question that asks for nothing but a time."""
    relevance = _worth(tier, _TIME_ALONE)
    parts = ScoreParts(None, None, 0.0, None, 0.0, 1.0, round(relevance, 4), 0.0)
    return [RankedCandidate(text_id, tier, relevance, relevance, parts) for text_id in ids]


def _worth(tier: Tier, relevance: float) -> float:
    return relevance - (1 - _PASSAGE) * max(0.0, relevance - 1.0) if tier == "passage" else relevance


def worth_reading(found: Sequence[RankedCandidate]) -> tuple[list[RankedCandidate], list[LeftOutCandidate]]:
    """Return the candidates that are about the query, and the others.

    The query has an answer when one text is about it by itself; then what is not far below the best goes along.
    """
    if max((one.alone for one in found), default=0.0) < _ENOUGH:
        return [], [_left_out(one, "below the floor") for one in found]
    least = max(_LEAST, _LEAST_OF_BEST * max(one.relevance for one in found))
    return [one for one in found if one.relevance >= least], [
        _left_out(one, "far below the best" if one.relevance >= _LEAST else "below the floor")
        for one in found
        if one.relevance < least
    ]


def in_order(found: Iterable[RankedCandidate]) -> list[RankedCandidate]:
    """Return candidates best first; of equals what was written last."""
    return sorted(sorted(found, key=lambda one: one.id, reverse=True), key=lambda one: -one.relevance)


def once_each(found: Iterable[RankedCandidate]) -> list[RankedCandidate]:
    """Return candidates best first, each once, by what speaks most for it."""
    best: dict[str, RankedCandidate] = {}
    for one in in_order(found):
        best.setdefault(one.id, one)
    return list(best.values())


def choose(
    found: Sequence[RankedCandidate],
    texts: CandidateTexts,
    query_terms: Sequence[str],
    now: datetime,
    *,
    limit: int,
    window: Window | None = None,
    firm: bool = False,
) -> Chosen:
    """Return the hits among candidates that were read, best first, and each of the first `limit` things once.

    A `window` is the time that the query speaks of; `firm` says that it is sure of it.
    """
    outdated = [_left_out(one, "outdated") for one in found if one.id in texts.outdated]
    relevant, left_out = worth_reading([one for one in found if one.id not in texts.outdated])
    relevant = _newest_of_equals_first((_read(one, texts, window, firm=firm) for one in relevant), texts)
    by_id = {one.id: one for one in relevant}
    hits: list[Hit] = []
    worth: dict[str, float] = {}
    gathered = _alike([texts.memories[one.id] for one in relevant if one.tier == "memory"], texts.near, limit)
    for stands, others in gathered:
        # What several rows say has the relevance of the best of them, whichever stands for them.
        worth[stands.id] = relevance = max(by_id[row.id].relevance for row in (stands, *others))
        hits.append(_memory_hit(stands, others, texts, relevance, by_id[stands.id].parts, now))
        left_out += [_left_out(by_id[other.id], "says the same", stands.id) for other in others]
    for one in (one for one in relevant if one.tier == "passage"):
        passage = texts.passages[one.id]
        if covering := _covering(passage, [hit for hit in hits if worth[hit.id] >= _AS_GOOD * one.relevance], texts):
            covering.passages.append(passage.id)
            # What stands for it is as good an answer.
            worth[covering.id] = max(worth[covering.id], one.relevance)
            left_out.append(_left_out(one, "covered", covering.id))
        else:
            worth[one.id] = one.relevance
            hits.append(_passage_hit(passage, one, query_terms, now))
    scored = [replace(hit, score=_rounded_score(worth[hit.id])) for hit in hits]
    return Chosen(sorted(scored, key=lambda hit: -worth[hit.id]), [*outdated, *left_out])


def without_seen(chosen: Chosen, seen: AbstractSet[str]) -> Chosen:
    """Return what was chosen without the hits that are `seen` (ids), or that say the same as what is."""
    known = {hit.id for hit in chosen.hits if not seen.isdisjoint((hit.id, *hit.same))} if seen else set[str]()
    left_out = [
        LeftOutCandidate(hit.id, "seen", None, hit.parts) for hit in chosen.hits if hit.id in known and hit.parts
    ]
    news = [hit for hit in chosen.hits if hit.id not in known]
    return Chosen(news, [*left_out, *chosen.left_out], len(known))


def _newest_of_equals_first(found: Iterable[RankedCandidate], texts: CandidateTexts) -> list[RankedCandidate]:
    """Return candidates best first; of equals what was said last, which need not have been written last."""
    return sorted(in_order(found), key=lambda one: (-one.relevance, -_said(one, texts).timestamp()))


def _said(one: RankedCandidate, texts: CandidateTexts) -> datetime:
    memory = texts.memories.get(one.id)
    return memory.said_at if memory else texts.passages[one.id].said_to


def _read(one: RankedCandidate, texts: CandidateTexts, window: Window | None, *, firm: bool) -> RankedCandidate:
    """Return a candidate with what only its text tells: how well it fits the time, and what it counts among equals.

    The time of a question makes an answer better and never makes one.
    """
    memory = texts.memories.get(one.id)
    its_prior = 0.0 if memory is None else prior(memory.kind, memory.priority)
    time = _closeness(one, texts, window) if window else one.parts.time
    told = one.relevance * (_QUESTION if memory and _is_question(memory) else 1.0)
    relevance = told * (1 + (_FIRM_TIME if firm else _TIME) * time) + _PRIOR * its_prior
    parts = replace(one.parts, time=round(time, 4), relevance=round(relevance, 4), prior=round(its_prior, 4))
    return replace(one, relevance=relevance, parts=parts)


def _is_question(memory: Memory) -> bool:
    return memory.content.startswith(labels.ASKED) and memory.content.rstrip().endswith(("?", "？"))


def _closeness(one: RankedCandidate, texts: CandidateTexts, window: Window) -> float:
    if memory := texts.memories.get(one.id):
        return closeness(memory.said_at, memory.refers_from, memory.refers_to, window)
    passage = texts.passages[one.id]
    return closeness(passage.said_from, passage.said_from, passage.said_to, window)


def _covering(passage: Passage, hits: Sequence[Hit], texts: CandidateTexts) -> Hit | None:
    """Return the first of these hits that was taken from a message of a passage, if there is one."""
    return next((hit for hit in hits if _covers(hit, passage, texts)), None)


def _rounded_score(relevance: float) -> float:
    return round(score(relevance), 4)


def _left_out(one: RankedCandidate, reason: LeftOutReason, by: str | None = None) -> LeftOutCandidate:
    return LeftOutCandidate(one.id, reason, by, one.parts)


def _covers(hit: Hit, passage: Passage, texts: CandidateTexts) -> bool:
    """Tell whether a memory was taken from a message of a passage."""
    return any(
        session_id == passage.session_id and passage.first_seq <= seq <= passage.last_seq
        for memory_id in (hit.id, *hit.same)
        for session_id, seq in texts.said_in.get(memory_id, ())
    )


def _alike(
    rows: Sequence[Memory], near: Mapping[tuple[str, str], float], wanted: int
) -> list[tuple[Memory, list[Memory]]]:
    """Return rows in order, each with those behind it that say the same; a live row stands for others.

    Behind the first `wanted` things, which are those that are shown, only the very same words are the same.
    """
    marks = {row.id: fingerprint(row.content) for row in rows}
    retold = cache(retold_print)
    gathered: list[list[Memory]] = []
    by_words: dict[str, list[Memory]] = {}
    for row in rows:
        words = same_words_key(row.content)
        same = by_words.get(words)
        if same is None:
            alike = (each for each in gathered[:wanted] if say_the_same(row, each[0], marks, retold, near))
            same = next(alike, None)
        if same is None:
            gathered.append(same := [])
        same.append(row)
        by_words.setdefault(words, same)
    chosen = ((next((row for row in same if row.superseded_at is None), same[0]), same) for same in gathered)
    return [(stands, [row for row in same if row.id != stands.id]) for stands, same in chosen]


def _memory_hit(
    row: Memory, others: Sequence[Memory], texts: CandidateTexts, relevance: float, parts: ScoreParts, now: datetime
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


def _passage_hit(passage: Passage, one: RankedCandidate, query_terms: Sequence[str], now: datetime) -> Hit:
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
