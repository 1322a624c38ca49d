"""The charts of the overview: bars of one number each, and weeks of several."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from esker.server.core.records import KINDS, Kind

_MOST_BARS = 12


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: its name, its number, and the page that lists what it counts; None if there is none."""

    name: str
    count: int
    address: str | None = None


@dataclass(frozen=True, slots=True)
class Week:
    """A bar of the chart of weeks: the live rows that were said in it, by kind. The first one has all before it."""

    name: str
    by_kind: dict[Kind, int]

    @property
    def rows(self) -> int:
        """How many rows of any kind it has."""
        return sum(self.by_kind.values())


def longest(bars: Iterable[Bar]) -> list[Bar]:
    """Return the longest bars, the longest first, and one for all others together."""
    ordered = sorted(bars, key=lambda bar: (-bar.count, bar.name))
    shown, others = ordered[:_MOST_BARS], ordered[_MOST_BARS:]
    return [*shown, *([Bar(f"{len(others)} others", sum(bar.count for bar in others))] if others else [])]


def weeks_of(counted: Mapping[tuple[datetime | None, Kind], int], monday: datetime, weeks: int) -> Sequence[Week]:
    """Return all that is older, then the last weeks up to that of `monday`, also those without rows."""
    begins = [None, *(monday - timedelta(weeks=back) for back in reversed(range(weeks)))]
    return [
        Week(f"{week:%Y-%m-%d}" if week else "older", {kind: counted.get((week, kind), 0) for kind in KINDS})
        for week in begins
    ]
