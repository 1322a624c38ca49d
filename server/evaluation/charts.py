"""The four charts of a pool's page."""

from collections.abc import Sequence
from statistics import median, quantiles

from esker.server.core.pool.evaluation import AGES, DEPTHS, PoolEvaluation
from esker.server.core.records import KINDS
from esker.server.evaluation.bar_chart import BarChart

# Classes of scores, and of ten per cent of the recalls.
_BINS = 10


def recall_chart(evaluation: PoolEvaluation) -> BarChart:
    """Return the share of questions whose answer is among the first k hits, for each way of searching."""
    ways = evaluation.ranks_by_way()
    series = {way: [round(100 * ranks.recall[depth]) for depth in DEPTHS] for way, ranks in ways.items()}
    labels = ["first hit" if depth == 1 else f"first {depth} hits" for depth in DEPTHS]
    caption = (
        "The percentage of questions whose right text was among the first hits. Agents get full recall; the other"
        " ways are parts of it. Higher is better."
    )
    return BarChart("recall", "% of questions", labels, series, caption, top=100)


def scores_chart(evaluation: PoolEvaluation) -> BarChart:
    """Return the scores of right answers beside those of answers to made-up questions."""
    right = [one.score for one in evaluation.asked if one.score is not None]
    wrong = [one.score for one in evaluation.made_up if one.score is not None]
    series = {"right answers": _binned(right), "answers to made-up questions": _binned(wrong)}
    labels = [f"{low / _BINS:.1f}–{(low + 1) / _BINS:.1f}" for low in range(_BINS)]
    caption = (
        "The number of answers by score (0 to 1). Right answers should be on the right, answers to made-up questions on"
        " the left or absent: where both occur, the score does not separate them."
    )
    return BarChart("scores", "answers", labels, series if right or wrong else {}, caption)


def ages_chart(evaluation: PoolEvaluation) -> BarChart:
    """Return the live rows of each kind, by age."""
    counts = evaluation.store.by_age
    series = {kind: [counts[kind].get(age, 0) for age in range(len(AGES))] for kind in KINDS if kind in counts}
    caption = (
        "Live rows, by kind and by the time since they were said. Old rows are not a fault: reflections condense them."
    )
    return BarChart("ages", "live rows", AGES, series, caption, stacked=True)


def times_chart(evaluation: PoolEvaluation) -> BarChart:
    """Return the durations of recalls, from the fastest to the slowest; nothing for fewer than ten recalls."""
    taken = sorted(one.milliseconds for one in evaluation.asked)
    labels = ["fastest", *(f"{10 * n} %" for n in range(1, _BINS)), "slowest"]
    if len(taken) < _BINS:
        return BarChart("times", "milliseconds", labels, {}, "")
    marks = [taken[0], *quantiles(taken, n=_BINS, method="inclusive"), taken[-1]]
    caption = (
        f"Half of the recalls took at most {median(taken):,.0f} ms, nine of ten at most {marks[-2]:,.0f} ms, including"
        " the embedding of the question. Good: all far below two seconds, the time limit of agents' hooks. They ran"
        " one after the other, beside all other work of this machine."
    )
    return BarChart("times", "milliseconds", labels, {"recalls": [round(mark) for mark in marks]}, caption)


def _binned(scores: Sequence[float]) -> list[int]:
    counts = [0] * _BINS
    for score in scores:
        counts[min(_BINS - 1, int(score * _BINS))] += 1
    return counts
