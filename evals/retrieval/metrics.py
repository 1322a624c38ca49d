"""Figures of retrieval, as pure functions of the turns that hits cover.

The reply to one query is a list of sets: for each hit, best first, the ids of the turns that it covers. A turn of the
evidence counts once, at the first hit that covers it; other turns of a hit are ignored.
"""

import math
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate

Covers = Sequence[Set[str]]


def first_ranks(covers: Covers, evidence: Collection[str]) -> dict[str, int]:
    """Return, for each found turn of the evidence, the rank (from 1) of the first hit that covers it."""
    ranks: dict[str, int] = {}
    for rank, covered in enumerate(covers, start=1):
        for turn in covered & set(evidence):
            ranks.setdefault(turn, rank)
    return ranks


def recall(covers: Covers, evidence: Collection[str], k: int) -> float:
    """Return the share of the evidence that the first `k` hits cover."""
    ranks = first_ranks(covers, evidence)
    return sum(rank <= k for rank in ranks.values()) / len(set(evidence))


def found_in_turns(turns: Sequence[str], evidence: Collection[str], n: int) -> float:
    """Return the share of the evidence among the first `n` of the distinct turns that hits cover, in reading order."""
    return len(set(turns[:n]) & set(evidence)) / len(set(evidence))


def found_within(covers: Covers, tokens: Sequence[int], evidence: Collection[str], budget: int) -> float:
    """Return the share of the evidence that the first hits cover which take at most `budget` tokens together."""
    fitting = sum(total <= budget for total in accumulate(tokens))
    return recall(covers, evidence, fitting)


def precision(covers: Covers, evidence: Collection[str]) -> float:
    """Return the share of the hits that cover any evidence; 0 without hits."""
    return sum(not covered.isdisjoint(evidence) for covered in covers) / max(1, len(covers))


def all_found(covers: Covers, evidence: Collection[str], k: int) -> float:
    """Return 1 if the first `k` hits cover all evidence, else 0."""
    return float(recall(covers, evidence, k) == 1)


def ndcg(covers: Covers, evidence: Collection[str], k: int) -> float:
    """Return the normalised discounted cumulative gain of the first `k` places, from 0 to 1.

    A hit that covers n new turns of the evidence counts as n places with a gain of 1 each (as one place without gain if
    n is 0), and place p is discounted by log2(p + 1) (Burges and others 2005, after Järvelin and Kekäläinen 2002). With
    one turn per hit this is the usual nDCG, and it never exceeds 1.
    """
    found = list(first_ranks(covers, evidence).values())
    gains = [gain for rank in range(1, len(covers) + 1) for gain in [1.0] * found.count(rank) or [0.0]]
    return _discounted(gains[:k]) / _discounted([1.0] * min(k, len(set(evidence))))


def _discounted(gains: Iterable[float]) -> float:
    return sum(gain / math.log2(place + 1) for place, gain in enumerate(gains, start=1))


def reciprocal_rank(covers: Covers, evidence: Collection[str]) -> float:
    """Return 1 / rank of the first hit that covers any evidence; 0 if none does."""
    return 1 / min(first_ranks(covers, evidence).values(), default=math.inf)


@dataclass(frozen=True, slots=True)
class Abstention:
    """The quality of abstaining; a share of nothing is None.

    `precision`: the share of abstentions on unanswerable questions. `recall`: the share of unanswerable questions with
    an abstention. `wrongly`: the share of answerable questions with an abstention.
    """

    precision: float | None
    recall: float | None
    wrongly: float | None


def abstention(answers: Sequence[tuple[bool, bool]]) -> Abstention:
    """Return the figures for pairs (question is answerable, reply was an abstention)."""
    silent = [answerable for answerable, abstained in answers if abstained]
    hopeless = [abstained for answerable, abstained in answers if not answerable]
    hopeful = [abstained for answerable, abstained in answers if answerable]
    return Abstention(
        precision=mean([not answerable for answerable in silent]), recall=mean(hopeless), wrongly=mean(hopeful)
    )


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, or None without values."""
    return math.fsum(values) / len(values) if values else None


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return the smallest value that at least `share` (0 to 1) of the values do not exceed; None without values."""
    if not values:
        return None
    return sorted(values)[max(1, math.ceil(share * len(values))) - 1]
