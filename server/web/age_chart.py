"""The chart of the overview that shows when live rows were said: by week, month or year."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from esker.server.core.records import KINDS, Kind
from esker.server.core.reports import RowsOfAge
from esker.server.usecases.overview import WEEKS, YEARS, monday_before

Grain = Literal["week", "month", "year"]
"""The unit of time of a bar of the chart."""
GRAINS: Sequence[Grain] = ("week", "month", "year")

_MOST = {"week": WEEKS, "month": 36, "year": YEARS}
# Fewer bars would be too wide to be compared.
_LEAST = 12
# More names below the chart would not fit on a phone.
_MOST_NAMES = 4
# The ends of a scale: each is a whole number of times ten, a hundred and so on, and so is its half from 2 on.
_SCALES = (1, 2, 4, 6, 8, 10)
# The share of the rows that the bars without the first must show. Rows with a wrong date make no other chart.
_SHOWN = 0.9


@dataclass(frozen=True, slots=True)
class Period:
    """A bar of the chart: the live rows that were said in it, by kind."""

    name: str
    by_kind: dict[Kind, int]

    @property
    def rows(self) -> int:
        """How many rows of any kind it has."""
        return sum(self.by_kind.values())


@dataclass(frozen=True, slots=True)
class AgeChart:
    """The bars of the chart in order. The first has all rows before the second."""

    grain: Grain
    periods: list[Period]

    @property
    def top(self) -> int:
        """The number at the top of the scale: the least round one that no bar exceeds."""
        most = max(1, *(period.rows for period in self.periods))
        power = 10 ** (len(str(most)) - 1)
        return next(scale * power for scale in _SCALES if scale * power >= most)

    @property
    def named(self) -> list[tuple[int, str]]:
        """The bars with a name below them as (place, name): the first, the last, and some at equal distances."""
        last = len(self.periods) - 1
        places = [round(last * step / (_MOST_NAMES - 1)) for step in range(_MOST_NAMES)]
        return [(place, self.periods[place].name) for place in places]


def age_chart(counted: Iterable[RowsOfAge], now: datetime, grain: Grain | None) -> AgeChart:
    """Return the chart by `grain`, or by the finest one that shows nine of ten rows in bars of their own.

    It begins with the oldest row that has such a bar. Rows with a date after `now`, in UTC, are in the last one.
    """
    rows = list(counted)
    charts = (AgeChart(each, _periods(rows, now, each)) for each in GRAINS if grain in (each, None))
    least = _SHOWN * sum(one.rows for one in rows)
    chart = next(charts)
    while sum(period.rows for period in chart.periods[1:]) < least and (coarser := next(charts, None)):
        chart = coarser
    return chart


def _periods(rows: Sequence[RowsOfAge], now: datetime, grain: Grain) -> list[Period]:
    begins = _begins(now, grain)
    counts = {begin: dict.fromkeys(KINDS, 0) for begin in [None, *begins]}
    for one in rows:
        begin = min(_begin(one, grain) or begins[0] - timedelta(1), begins[-1])
        counts[begin if begin in counts else None][one.kind] += one.rows
    used = next((place for place, begin in enumerate(begins) if any(counts[begin].values())), len(begins))
    shown = begins[min(used, len(begins) - _LEAST) :]
    return [Period("older", counts[None]), *(Period(_name(begin, grain), counts[begin]) for begin in shown)]


def _begins(now: datetime, grain: Grain) -> list[datetime]:
    """Return the moments at which the periods up to the present one begin."""
    back = reversed(range(_MOST[grain]))
    match grain:
        case "week":
            return [monday_before(now) - timedelta(weeks=weeks) for weeks in back]
        case "month":
            months = (12 * now.year + now.month - 1 - months for months in back)
            return [datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC) for month in months]
        case "year":
            return [datetime(now.year - years, 1, 1, tzinfo=UTC) for years in back]


def _begin(one: RowsOfAge, grain: Grain) -> datetime | None:
    if grain == "week":
        return one.week
    return one.month.replace(month=1) if one.month and grain == "year" else one.month


def _name(begin: datetime, grain: Grain) -> str:
    return f"{begin:%Y-%m-%d}"[: {"week": 10, "month": 7, "year": 4}[grain]]
