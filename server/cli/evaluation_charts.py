"""The pictures of `esker eval`, as SVG that stands alone: no script, no font and no style from elsewhere."""

import sys
from collections.abc import Callable, Mapping, Sequence
from statistics import median, quantiles
from typing import Any
from xml.etree import ElementTree

import pygal  # pyright: ignore[reportMissingTypeStubs]
from pygal.style import Style  # pyright: ignore[reportMissingTypeStubs]

from esker.server.core.pool.evaluation import AGES, DEPTHS, PoolEvaluation
from esker.server.core.records import KINDS

# For maps that we have not, pygal puts a finder of modules into the way of every later import, whatever is imported of
# it, and there is no setting against that. Python warns of such finders (this one has no `find_spec`), so it is taken
# out again as soon as it is there.
sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, pygal.PluginImportFixer)]

# The page gives these; where a picture stands alone, it is dark on white. Four that people who see colours differently
# can tell apart (Okabe and Ito, 2008).
_COLORS = ("var(--one, #0072b2)", "var(--two, #d55e00)", "var(--three, #007f5f)", "var(--four, #8a4f7d)")
_TEXT, _SUBTLE = "var(--text, #1c2430)", "var(--subtle, #4a5565)"
_LINE, _GROUND = "var(--line, #d5dae1)", "var(--ground, #ffffff)"
_SVG = "http://www.w3.org/2000/svg"
_BINS = 10

# A title that nobody gave says only what has drawn it.
_UNWANTED = {f"{{{_SVG}}}script", f"{{{_SVG}}}title"}

Drawn = tuple[ElementTree.Element | None, str]
"""A picture, or None where there is nothing to show, and a sentence that says what is in it."""


def recall_chart(found: PoolEvaluation) -> Drawn:
    """Draw how often the answer is among the first k, for each way of searching."""
    ways = found.ranks_by_way()
    bars = {way: [round(100 * ranks.recall[depth]) for depth in DEPTHS] for way, ranks in ways.items()}
    labels = [f"among the first {depth}" if depth > 1 else "the very first" for depth in DEPTHS]
    caption = (
        f"In how many of 100 cases the right text was {labels[0]}, or {' or '.join(labels[1:])} hits. Full recall is"
        " what agents get; the others are its parts, each alone. Higher is better."
    )
    return _bars("recall", bars, labels, "% of questions", whole=True), caption


def scores_chart(found: PoolEvaluation) -> Drawn:
    """Draw which scores right answers have, and which those have that answer what nothing answers."""
    right = [one.score for one in found.asked if one.score is not None]
    wrongly = [one.score for one in found.made_up if one.score is not None]
    bars = {"right answers": _binned(right), "answers to made-up questions": _binned(wrongly)}
    labels = [f"{low / _BINS:.1f}–{(low + 1) / _BINS:.1f}" for low in range(_BINS)]
    caption = (
        "How many answers had which score (0 to 1). Right answers should stand on the right and answers to made-up"
        " questions on the left, or best not at all: where both stand, the score does not tell them apart."
    )
    return _bars("scores", bars if right or wrongly else {}, labels, "answers"), caption


def ages_chart(found: PoolEvaluation) -> Drawn:
    """Draw how many live rows of each kind there are, by age."""
    counts = found.store.by_age
    bars = {kind: [counts[kind].get(age, 0) for age in range(len(AGES))] for kind in KINDS if kind in counts}
    caption = (
        "Live rows, by kind and by how long ago they were said. Old ones are no fault: reflections condense what"
        " matters of them."
    )
    return _bars("ages", bars, AGES, "live rows", stacked=True), caption


def times_chart(found: PoolEvaluation) -> Drawn:
    """Draw how long recalls took, from the fastest to the slowest."""
    taken = sorted(one.milliseconds for one in found.asked)
    if len(taken) < _BINS:
        return None, ""
    marks = [taken[0], *quantiles(taken, n=_BINS, method="inclusive"), taken[-1]]
    labels = ["fastest", *(f"{10 * n} %" for n in range(1, _BINS)), "slowest"]
    bars = {"milliseconds": [round(mark) for mark in marks]}
    caption = (
        f"Half of the recalls took at most {median(taken):,.0f} ms, nine of ten at most {marks[-2]:,.0f} ms, the"
        " embedding of the question included. Good would be: all well below two seconds, for which the hooks of agents"
        " wait. They were asked here one after the other, beside whatever else this machine had to do."
    )
    return _bars("times", bars, labels, "milliseconds"), caption


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
    chart: Any = kind(
        **_ALWAYS,
        style=_style(),
        y_title=unit,
        legend_at_bottom_columns=len(bars),
        show_legend=stacked or len(bars) > 1,
        range=(0, 100) if whole else None,
        print_values=not stacked,
    )
    # Its own is drawn anew each time.
    chart.uuid = name
    chart.x_labels = list(labels)
    for label, values in bars.items():
        chart.add(label, list(values))
    return _alone(chart.render())


_ALWAYS: Mapping[str, Any] = {
    "width": 900,
    "height": 360,
    "js": [],
    "legend_at_bottom": True,
    "include_x_axis": True,
    "print_values_position": "top",
    "print_zeroes": False,
    "truncate_legend": -1,
    "truncate_label": -1,
    "max_scale": 6,
    "disable_xml_declaration": True,
}


def _style() -> Style:
    return Style(
        background=_GROUND,
        plot_background=_GROUND,
        foreground=_TEXT,
        foreground_strong=_TEXT,
        foreground_subtle=_SUBTLE,
        colors=_COLORS,
        # Else it works them out of the colours, which it cannot read.
        value_colors=(_TEXT,) * len(_COLORS),
        opacity="1",
        font_family="system-ui, sans-serif",
        label_font_size=14,
        major_label_font_size=14,
        legend_font_size=14,
        value_font_size=13,
        guide_stroke_color=_LINE,
        major_guide_stroke_color=_LINE,
        title_font_size=15,
    )


def _alone(drawn: str) -> ElementTree.Element:
    """Return a drawing without its scripts and its titles. Whoever cannot see it hears of it as one."""
    ElementTree.register_namespace("", _SVG)
    root = ElementTree.fromstring(drawn)  # noqa: S314 - it was made here
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag in _UNWANTED]:
            parent.remove(child)
    root.set("role", "img")
    return root
