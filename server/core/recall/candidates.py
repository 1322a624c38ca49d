"""The candidates of a recall: what both searches found, ranked by relevance, and those that are above the floor."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from esker.server.core.recall.answer import LeftOutCandidate, LeftOutReason, ScoreParts
from esker.server.core.recall.relevance import Scale, Signals
from esker.server.core.records import Tier

# If no candidate reaches this relevance by itself, the query has no answer.
_FLOOR = 1.0
# If one does, the hits are all candidates with at least this relevance and this share of the best one. Both are without
# neighbours, which only order hits. A memory is one fact and needs more than a passage, whose words are about several.
_LEAST = 0.5
_LEAST_OF_BEST: Mapping[Tier, float] = {"memory": 0.45, "passage": 0.35}
# Relevance of every text in the window when the query names only a time.
_TIME_ALONE = 2.0


@dataclass(frozen=True, slots=True)
class TextHit:
    """A text that one search found, with its keyword share or its cosine as `score`.

    `named`: the text contains a rare identifier of the query.
    """

    id: str
    number: int
    score: float
    named: bool = False


@dataclass(frozen=True, slots=True)
class Candidates:
    """The results of both searches in one tier: ids in the order of each, signals by number, and their scale.

    `neighbours` maps the number of a memory to those of its neighbours, which may be candidates themselves; `tokens`
    are the lengths of memories with neighbours.
    """

    tier: Tier
    scale: Scale
    keyword: Sequence[str] = ()
    vector: Sequence[str] = ()
    numbers: Mapping[str, int] = field(default_factory=dict[str, int])
    signals: Mapping[int, Signals] = field(default_factory=dict[int, Signals])
    neighbours: Mapping[int, Collection[int]] = field(default_factory=dict[int, Collection[int]])
    tokens: Mapping[int, int] = field(default_factory=dict[int, int])


class RankedCandidate(NamedTuple):
    """A candidate with its relevance, by which candidates are sorted, and that of which it is made.

    `alone` is its relevance without neighbours, and `around` is theirs. `time` is how well it fits the time in the
    question, from 0 to 1, and `prior` that of its kind. Its ranks in the two searches count from 1.
    """

    id: str
    tier: Tier
    relevance: float
    alone: float
    own: Signals = Signals(0.0, None)
    around: float = 0.0
    keyword_rank: int | None = None
    vector_rank: int | None = None
    time: float = 0.0
    prior: float = 0.0

    @property
    def parts(self) -> ScoreParts:
        """The parts of its relevance, as an answer shows them: a recall has hundreds of candidates, and shows few."""
        return ScoreParts(
            self.keyword_rank,
            self.vector_rank,
            round(self.own.keyword, 4),
            None if self.own.cosine is None else round(self.own.cosine, 4),
            round(self.around, 4),
            round(self.time, 4),
            round(self.relevance, 4),
            round(self.prior, 4),
            named=self.own.named,
        )

    def left_out(self, reason: LeftOutReason, by: str | None = None) -> LeftOutCandidate:
        """Return that it is not a hit, and why; `by` is the id of the hit that represents it."""
        return LeftOutCandidate(self.id, reason, by, self.parts)


def ranked(candidates: Candidates) -> list[RankedCandidate]:
    """Return the candidates of a tier with their relevance, best first."""
    by_keyword = {text_id: rank for rank, text_id in enumerate(candidates.keyword, start=1)}
    by_vector = {text_id: rank for rank, text_id in enumerate(candidates.vector, start=1)}
    found: list[RankedCandidate] = []
    for text_id, number in candidates.numbers.items():
        own = candidates.signals[number]
        beside = [candidates.signals[other] for other in candidates.neighbours.get(number, ())]
        around = candidates.scale.around(beside, candidates.tokens[number]) if beside else 0.0
        alone = candidates.scale.relevance(own)
        relevance = candidates.scale.relevance(own, around) if around else alone
        ranks = by_keyword.get(text_id), by_vector.get(text_id)
        found.append(RankedCandidate(text_id, candidates.tier, relevance, alone, own, around, *ranks))
    return best_first(found)


def candidates_in_window(tier: Tier, ids: Iterable[str]) -> list[RankedCandidate]:
    """Return texts as candidates for a question that names only a time."""
    return [RankedCandidate(text_id, tier, _TIME_ALONE, _TIME_ALONE, time=1.0) for text_id in ids]


def above_floor(found: Sequence[RankedCandidate]) -> list[RankedCandidate]:
    """Return the relevant candidates.

    If one candidate reaches the floor by itself, all that are not far below the best by themselves are relevant; else
    none is.
    """
    best = max((one.alone for one in found), default=0.0)
    if best < _FLOOR:
        return []
    least: dict[Tier, float] = {tier: max(_LEAST, share * best) for tier, share in _LEAST_OF_BEST.items()}
    return [one for one in found if one.alone >= least[one.tier]]


def below_floor(found: Iterable[RankedCandidate], relevant: Sequence[RankedCandidate]) -> list[LeftOutCandidate]:
    """Return the candidates that are not relevant, each with the reason."""
    kept = {one.id for one in relevant}
    return [
        one.left_out("far below the best" if kept and one.alone >= _LEAST else "below the floor")
        for one in found
        if one.id not in kept
    ]


def best_first(found: Iterable[RankedCandidate]) -> list[RankedCandidate]:
    """Return candidates best first; ties: the one that was written last."""
    return sorted(found, key=lambda one: (one.relevance, one.id), reverse=True)


def best_of_each(found: Iterable[RankedCandidate]) -> list[RankedCandidate]:
    """Return candidates best first, each once with its highest relevance."""
    best: dict[str, RankedCandidate] = {}
    for one in best_first(found):
        best.setdefault(one.id, one)
    return list(best.values())
