"""The pictures of `esker eval`, as SVG that stands alone: no script, no font and no style from elsewhere."""

import sys
from collections.abc import Callable, Mapping, Sequence
from statistics import quantiles
from typing import Any
from xml.etree import ElementTree

import pygal  # pyright: ignore[reportMissingTypeStubs]
from pygal.style import Style  # pyright: ignore[reportMissingTypeStubs]

from server.core.pool_evaluation import AGES, DEPTHS, PoolEvaluation
from server.core.records import KINDS

# For maps that we have not, pygal puts a finder of modules into the way of every later import, of a kind that Python
# warns of.
sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, pygal.PluginImportFixer)]

# Four that people who see colours differently can tell apart (Okabe and Ito, 2008), dark enough on white.
_COLORS = ("#0072b2", "#d55e00", "#007f5f", "#8a4f7d")
_TEXT = "#1c2430"
_SVG = "http://www.w3.org/2000/svg"
_BINS = 10

_UNWANTED = {f"{{{_SVG}}}script"}

Drawn = tuple[ElementTree.Element | None, str]
"""A picture, or None where there is nothing to show, and a sentence that says what is in it."""


def recall_chart(found: PoolEvaluation) -> Drawn:
    """Draw how often the answer is among the first k, for each way of searching."""
    ways = found.ranks_by_way()
    bars = {way: [round(100 * ranks.recall[depth], 1) for depth in DEPTHS] for way, ranks in ways.items()}
    labels = [f"first {depth}" if depth > 1 else "the first" for depth in DEPTHS]
    caption = "The share of questions whose answer is among the first hits, in percent, for each way of searching."
    return _bars("recall", bars, labels, "% of questions", whole=True), caption


def scores_chart(found: PoolEvaluation) -> Drawn:
    """Draw which scores right answers have, and which those have that answer what nothing answers."""
    right = [one.score for one in found.asked if one.score is not None]
    wrongly = [one.score for one in found.made_up if one.score is not None]
    bars = {"right answers": _binned(right), "answers to made-up questions": _binned(wrongly)}
    labels = [f"{low / _BINS:.1f}" for low in range(_BINS)]
    caption = "How many answers have which score (from the number to the next): the further apart the two, the better."
    return _bars("scores", bars if right or wrongly else {}, labels, "answers"), caption


def ages_chart(found: PoolEvaluation) -> Drawn:
    """Draw how many live rows of each kind there are, by age."""
    counts = found.store.by_age
    bars = {kind: [counts[kind].get(age, 0) for age in range(len(AGES))] for kind in KINDS if kind in counts}
    return _bars(
        "ages", bars, AGES, "live rows", stacked=True
    ), "Live rows by kind, and by how long ago they were said."


def times_chart(found: PoolEvaluation) -> Drawn:
    """Draw how long recalls took, from the fastest to the slowest."""
    taken = sorted(one.milliseconds for one in found.asked)
    if len(taken) < _BINS:
        return None, ""
    marks = [taken[0], *quantiles(taken, n=_BINS, method="inclusive"), taken[-1]]
    labels = ["0 %", *(f"{10 * n} %" for n in range(1, _BINS)), "100 %"]
    bars = {"milliseconds": [round(mark, 1) for mark in marks]}
    caption = (
        "So many percent of the recalls took at most so many milliseconds, the embedding of the question included."
    )
    return _bars("times", bars, labels, "ms"), caption


def _binned(scores: Sequence[float]) -> list[int]:
    counts = [0] * _BINS
    for score in scores:
        counts[min(_BINS - 1, int(score * _BINS))] += 1
    return counts


def _bars(
    name: str,
    bars: Mapping[str, Sequence[float]],
    labels: Sequence[str],
    unit: str,
    *,
    stacked: bool = False,
    whole: bool = False,
) -> ElementTree.Element | None:
    """Draw a group of bars for each label. `whole` says that the values are shares, of which 100 is all."""
    if not bars:
        return None
    kind: Callable[..., Any] = pygal.StackedBar if stacked else pygal.Bar
    style = Style(
        background="#ffffff",
        plot_background="#ffffff",
        foreground=_TEXT,
        foreground_strong=_TEXT,
        foreground_subtle="#4a5565",
        colors=_COLORS,
        opacity="1",
        font_family="system-ui, sans-serif",
        label_font_size=14,
        major_label_font_size=14,
        legend_font_size=14,
        value_font_size=13,
        guide_stroke_color="#d5dae1",
        major_guide_stroke_color="#d5dae1",
        title_font_size=15,
    )
    chart: Any = kind(
        style=style,
        width=900,
        height=360,
        js=[],
        y_title=unit,
        legend_at_bottom=True,
        show_legend=stacked or len(bars) > 1,
        range=(0, 100) if whole else None,
        include_x_axis=True,
        print_values=not stacked,
        print_values_position="top",
        print_zeroes=False,
        truncate_legend=-1,
        disable_xml_declaration=True,
    )
    # Its own is drawn anew each time.
    chart.uuid = name
    chart.x_labels = list(labels)
    for label, values in bars.items():
        chart.add(label, list(values))
    return _alone(chart.render())


def _alone(drawn: str) -> ElementTree.Element:
    """Return a drawing without its scripts."""
    ElementTree.register_namespace("", _SVG)
    root = ElementTree.fromstring(drawn)  # noqa: S314 - it was made here
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag in _UNWANTED]:
            parent.remove(child)
    return root
