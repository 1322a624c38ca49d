"""Figures of retrieval, as pure functions of what the hits cover.

A run of one query is a list of sets: for each hit, best first, the ids of the turns that it covers. A turn of the
evidence counts once, at the first hit that covers it; what else a hit covers counts neither for nor against it.
"""

import math
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass

Covers = Sequence[Set[str]]


def first_ranks(covers: Covers, evidence: Collection[str]) -> dict[str, int]:
    """Return for each turn of the evidence that was found the rank, from 1, of the first hit that covers it."""
    ranks: dict[str, int] = {}
    for rank, covered in enumerate(covers, start=1):
        for turn in covered & set(evidence):
            ranks.setdefault(turn, rank)
    return ranks


def recall(covers: Covers, evidence: Collection[str], k: int) -> float:
    """Return the share of the evidence that the first `k` hits cover."""
    ranks = first_ranks(covers, evidence)
    return sum(rank <= k for rank in ranks.values()) / len(set(evidence))


def all_found(covers: Covers, evidence: Collection[str], k: int) -> float:
    """Return 1 when the first `k` hits cover all of the evidence, else 0."""
    return float(recall(covers, evidence, k) == 1)


def ndcg(covers: Covers, evidence: Collection[str], k: int) -> float:
    """Return the normalised discounted cumulative gain of the first `k` places, from 0 to 1.

    A hit that covers n turns of the evidence that no hit before it covers stands for n places, each with a gain of 1
    (one that covers nothing new: a place without gain), and place p is discounted by log2(p + 1) (Burges
    and others 2005, of what Järvelin and Kekäläinen proposed in 2002). With one turn a hit this is the usual nDCG, and
    no list of hits can exceed 1.
    """
    found = list(first_ranks(covers, evidence).values())
    gains = [gain for rank in range(1, len(covers) + 1) for gain in [1.0] * found.count(rank) or [0.0]]
    return _discounted(gains[:k]) / _discounted([1.0] * min(k, len(set(evidence))))


def _discounted(gains: Iterable[float]) -> float:
    return sum(gain / math.log2(place + 1) for place, gain in enumerate(gains, start=1))


def reciprocal_rank(covers: Covers, evidence: Collection[str]) -> float:
    """Return 1 over the rank of the first hit that covers any of the evidence; 0 when none does."""
    return 1 / min(first_ranks(covers, evidence).values(), default=math.inf)


@dataclass(frozen=True, slots=True)
class Abstention:
    """How well "nothing is known about this" was said; None where there is nothing to take a share of.

    `precision`: of the questions answered with nothing, the share that has no answer. `recall`: of the questions that
    have no answer, the share answered with nothing. `wrongly`: of the questions that have one, the share answered with
    nothing.
    """

    precision: float | None
    recall: float | None
    wrongly: float | None


def abstention(answers: Sequence[tuple[bool, bool]]) -> Abstention:
    """Return the figures for pairs of whether a question is answerable and whether nothing was answered."""
    silent = [answerable for answerable, abstained in answers if abstained]
    hopeless = [abstained for answerable, abstained in answers if not answerable]
    hopeful = [abstained for answerable, abstained in answers if answerable]
    return Abstention(
        precision=mean([not answerable for answerable in silent]), recall=mean(hopeless), wrongly=mean(hopeful)
    )


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, or None of nothing."""
    return math.fsum(values) / len(values) if values else None


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return the smallest value that at least `share` (0 to 1) of the values do not exceed; None of nothing."""
    if not values:
        return None
    return sorted(values)[max(1, math.ceil(share * len(values))) - 1]
