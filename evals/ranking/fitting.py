"""Fits the weights of evidence to questions, and measures them on questions that had no part in the fit.

A text that answers a question should rank above every other candidate. A logistic model is therefore fitted to the
differences between the evidence for right and for wrong candidates (pairwise, without a constant), and its coefficients
are the weights. All pairs of a question count as much together as those of any other question.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from esker.server.core.errors import InvalidInput
from evals.ranking.evidence import FEATURES, AskedQuestion
from evals.retrieval.metrics import mean, ndcg, recall, reciprocal_rank

# Variance of the weights around 0 before any data, in standard deviations of each feature; it only keeps them finite.
_PRIOR_VARIANCE = 100.0
_STEPS = 25

Weights = NDArray[np.float64]
"""A weight for each of FEATURES; only their ratios matter."""


def fitted(asked: Collection[AskedQuestion]) -> Weights:
    """Return the weights that rank the right answers of some questions best. The first is 1, and none is negative.

    Raises InvalidInput if the words of these questions do not help to find their answers.
    """
    pairs = [_pairs(one) for one in asked if one.right.any() and not one.right.all()]
    differences = np.concatenate(pairs)
    importance = np.concatenate([np.full(len(each), 1 / len(each)) for each in pairs])
    kept = list(range(len(FEATURES)))
    while True:
        weights = np.zeros(len(FEATURES))
        weights[kept] = _newton(differences[:, kept], importance)
        if (weights[kept] >= 0).all():
            break
        kept.remove(int(np.argmin(weights)))
    if not weights[0]:
        raise InvalidInput("The answers to these questions share no words with them.", hint="Add another data set.")
    return weights / weights[0]


def _pairs(one: AskedQuestion) -> NDArray[np.float64]:
    """Return the difference in evidence between each right candidate and each wrong one."""
    right, wrong = one.features[one.right], one.features[~one.right]
    return (right[:, None, :] - wrong[None, :, :]).reshape(-1, len(FEATURES))


def _newton(differences: NDArray[np.float64], importance: NDArray[np.float64]) -> Weights:
    scale = np.sqrt((importance[:, None] * differences**2).sum(axis=0) / importance.sum()) + 1e-12
    scaled = differences / scale
    weights = np.zeros(scaled.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(scaled @ weights, -30, 30)))
        slope: Weights = scaled.T @ (importance * (1 - chance)) - weights / _PRIOR_VARIANCE
        curve: Weights = (scaled * (importance * chance * (1 - chance))[:, None]).T @ scaled
        weights += np.linalg.solve(curve + np.eye(len(weights)) / _PRIOR_VARIANCE, slope)
    return weights / scale


@dataclass(frozen=True, slots=True)
class Quality:
    """Means over questions: the share of the evidence among the first ten, nDCG at ten, and the reciprocal rank."""

    recall: float
    ndcg: float
    mrr: float


def evidence_of(one: AskedQuestion, weights: Weights) -> NDArray[np.float64]:
    """Return the evidence for each candidate; its neighbours count at most as much as itself, as in recall."""
    alone = one.features[:, :2] @ weights[:2]
    around = one.features[:, 2:] @ weights[2:]
    return alone + np.minimum(around, np.maximum(alone, 0.0))


def quality(asked: Sequence[AskedQuestion], weights_of: Callable[[AskedQuestion], Weights]) -> Quality:
    """Return the quality of the order that `weights_of` each question give, without a floor."""
    orders = [_order(one, weights_of(one)) for one in asked]
    pairs = list(zip(orders, (one.evidence for one in asked), strict=True))
    return Quality(
        mean([recall(order, evidence, 10) for order, evidence in pairs]) or 0.0,
        mean([ndcg(order, evidence, 10) for order, evidence in pairs]) or 0.0,
        mean([reciprocal_rank(order, evidence) for order, evidence in pairs]) or 0.0,
    )


def _order(one: AskedQuestion, weights: Weights) -> list[set[str]]:
    """Return the candidates, best first, each as the set of turns that it covers."""
    places: list[int] = np.argsort(-evidence_of(one, weights), kind="stable").tolist()
    return [{one.turns[place]} for place in places]


def held_out(asked: Sequence[AskedQuestion], parts: Mapping[str, int]) -> dict[int, Weights]:
    """Return, for each part, the weights that were fitted to all questions of the other parts.

    `parts` has the number of the part of each group of questions.
    """
    return {part: fitted([one for one in asked if parts[one.group] != part]) for part in sorted(set(parts.values()))}


def folds(asked: Sequence[AskedQuestion], number: int, seed: int) -> dict[str, int]:
    """Return the fold of each group of questions: a random one, with the groups of each set spread evenly."""
    draw = np.random.default_rng(seed)
    found: dict[str, int] = {}
    for data in dict.fromkeys(one.data for one in asked):
        groups = list(dict.fromkeys(one.group for one in asked if one.data == data))
        for place, group in enumerate(draw.permutation(len(groups))):
            found[groups[group]] = place % number
    return found


def by_set(asked: Sequence[AskedQuestion]) -> dict[str, int]:
    """Return the number of its set for each group of questions."""
    numbers = {data: number for number, data in enumerate(dict.fromkeys(one.data for one in asked))}
    return {one.group: numbers[one.data] for one in asked}
