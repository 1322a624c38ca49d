"""Bar charts as SVG without scripts, fonts or styles from elsewhere; their colours are the classes of `page.css`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from math import ceil, floor, log10

# In units of the drawing, which the page scales to its width.
_WIDTH, _HEIGHT = 900, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 890, 34, 290
_LABELS, _LEGEND = _BOTTOM + 22, _HEIGHT - 10
_SWATCH, _CHARACTER = 12, 8
_MOST_STEPS = 5
# The share of a group's width that its bars cover.
_FILLED = 0.8
_COLORS = ("one", "two", "three", "four")
"""Classes of the series, which people with any colour vision can tell apart."""


@dataclass(frozen=True, slots=True)
class BarChart:
    """For each label a group of bars, one of each series; `top` is the end of the axis, by default set by the values.

    Without series there is nothing to draw. `caption` says what the picture shows to readers who cannot see it.
    """

    name: str
    unit: str
    labels: Sequence[str]
    series: Mapping[str, Sequence[float]]
    caption: str
    stacked: bool = False
    top: float | None = None


def draw(chart: BarChart) -> str:
    """Return the picture."""
    parts = [*_axis(chart), *_bars(chart), *_labels(chart)]
    if len(chart.series) > 1:
        parts += _legend(list(chart.series))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" id="{escape(chart.name)}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
        f' role="img" aria-label="{escape(chart.caption)}">{"".join(parts)}</svg>'
    )


def _top(chart: BarChart) -> float:
    columns = zip(*chart.series.values(), strict=True)
    return chart.top or max(map(sum if chart.stacked else max, columns), default=0) or 1


def _step(top: float) -> float:
    """Return the distance of the lines: 1, 2 or 5 times a power of ten, at most five to the top, and whole numbers."""
    least = max(1.0, top / _MOST_STEPS)
    unit = 10 ** floor(log10(least))
    return next(unit * digit for digit in (1, 2, 5, 10) if unit * digit >= least)


def _end(chart: BarChart) -> float:
    """Return the value at the upper end of the axis."""
    top = _top(chart)
    return ceil(top / _step(top)) * _step(top)


def _y(value: float, end: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * value / end


def _axis(chart: BarChart) -> Iterator[str]:
    end = _end(chart)
    step = _step(end)
    yield _text(0, 16, chart.unit, "start")
    for n in range(round(end / step) + 1):
        y = _y(n * step, end)
        yield f'<path class="{"line" if n else "base"}" d="M{_LEFT} {y:.1f}H{_RIGHT}"/>'
        yield _text(_LEFT - 8, y + 5, f"{n * step:,.0f}", "end")


def _bars(chart: BarChart) -> Iterator[str]:
    end, group = _end(chart), _group(chart)
    beside = 1 if chart.stacked else len(chart.series)
    width = group * _FILLED / beside
    below = [0.0] * len(chart.labels)
    for place, (color, values) in enumerate(zip(_COLORS, chart.series.values(), strict=False)):
        for label, value in enumerate(values):
            if not value:
                continue
            x = _LEFT + group * (label + (1 - _FILLED) / 2) + (0 if chart.stacked else place * width)
            y = _y(below[label] + value, end)
            height = _y(below[label], end) - y
            yield f'<rect class="{color}" x="{x:.1f}" y="{y:.1f}" width="{width - 1:.1f}" height="{height:.1f}"/>'
            if chart.stacked:
                below[label] += value
            else:
                yield _text(x + width / 2, y - 5, f"{value:,.0f}", "middle")


def _group(chart: BarChart) -> float:
    return (_RIGHT - _LEFT) / len(chart.labels)


def _labels(chart: BarChart) -> Iterator[str]:
    group = _group(chart)
    for place, label in enumerate(chart.labels):
        yield _text(_LEFT + group * (place + 0.5), _LABELS, label, "middle")


def _legend(names: Sequence[str]) -> Iterator[str]:
    widths = [3 * _SWATCH + _CHARACTER * len(name) for name in names]
    for color, name, x in zip(_COLORS, names, accumulate(widths, initial=_LEFT), strict=False):
        yield f'<rect class="{color}" x="{x}" y="{_LEGEND - _SWATCH + 1}" width="{_SWATCH}" height="{_SWATCH}"/>'
        yield _text(x + _SWATCH + 6, _LEGEND, name, "start")


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
