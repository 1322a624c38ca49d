"""The charts of the overview whose bars have one number each."""

from collections.abc import Iterable
from dataclasses import dataclass

_MOST_BARS = 12


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: its name, its number, and the page that lists what it counts; None if there is none."""

    name: str
    count: int
    address: str | None = None


def longest(bars: Iterable[Bar]) -> list[Bar]:
    """Return the longest bars, the longest first, and one for all others together."""
    ordered = sorted(bars, key=lambda bar: (-bar.count, bar.name))
    shown, others = ordered[:_MOST_BARS], ordered[_MOST_BARS:]
    return [*shown, *([Bar(f"{len(others)} others", sum(bar.count for bar in others))] if others else [])]
