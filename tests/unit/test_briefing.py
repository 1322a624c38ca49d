"""A briefing: its parts, their order, and the rows that are left out if they do not fit."""

import pytest

from esker.server.core.pack.briefing import Briefing, brief
from esker.server.core.pack.records import PackRow
from esker.server.core.similar_projects import UnknownProject
from esker.server.core.text.tokens import estimate_tokens
from tests.support.records import NOON, pack_row, session

PROJECT = "shop"


def briefed(*best: PackRow, pinned: tuple[PackRow, ...] = (), tokens: int = 2_000) -> Briefing:
    """Return a briefing on the project without a session."""
    return brief(PROJECT, pinned, best, None, tokens)


def lines(briefing: Briefing) -> list[str]:
    """Return the lines of a briefing."""
    return briefing.text.splitlines()


def test_the_session_comes_first_then_pinned_rows_then_the_best() -> None:
    row, pin = pack_row("Deploys go to hel1.", project=PROJECT), pack_row("Never on Friday.", kind="manual")
    now = session(
        project=PROJECT, thread_title="Move", current_task="Move it.", suggested_continuation="Test.", last_sent_at=NOON
    )
    made = brief(PROJECT, [pin], [row], now, 2_000)
    assert lines(made) == [
        "Latest session (api, 2026-03-02): Move",
        "Current task: Move it.",
        "Suggested continuation: Test.",
        "What matters in project shop:",
        f"* 🟡 2026-03-02 Never on Friday. [{pin.id}]",
        f"* 🟡 2026-03-02 Deploys go to hel1. [{row.id}]",
    ]
    assert [(shown.id, shown.pinned) for shown in made.rows] == [(pin.id, True), (row.id, False)]
    assert (made.known, made.left_out, made.tokens) == (True, 0, estimate_tokens(made.text))
    assert made.session
    assert (made.session.id, made.session.last_sent_at) == (now.id, NOON)


def test_a_row_or_session_of_another_project_names_its_project() -> None:
    row = pack_row("Ports are closed.", project="infra")
    made = brief(PROJECT, [], [row], session(project="infra"), 2_000)
    assert lines(made)[0] == "Latest session (api, project infra): ses_1"
    assert lines(made)[-1].endswith(f"[{row.id}, project infra]")


def test_a_tentative_row_is_marked() -> None:
    assert "Maybe Kafka. (tentative)" in briefed(pack_row("Maybe Kafka.", tentative=True)).text


def test_days_are_those_of_the_sessions_time_zone() -> None:
    row = pack_row("Late.", said_at=NOON.replace(hour=23))
    assert "2026-03-03 Late." in brief(None, [], [row], session(timezone="Europe/Berlin"), 2_000).text
    assert "2026-03-02 Late." in briefed(row).text


def test_each_wording_is_shown_once_where_it_comes_first() -> None:
    pin, again, other = pack_row("Same.", kind="manual"), pack_row("Same."), pack_row("Other.")
    made = briefed(other, again, pinned=(pin,))
    assert [row.id for row in made.rows] == [pin.id, other.id]
    assert made.left_out == 0


@pytest.mark.parametrize("tokens", [100, 101, 120, 150, 200, 400])
def test_a_briefing_keeps_its_budget_and_counts_the_rows_that_do_not_fit(tokens: int) -> None:
    rows = [pack_row(f"Number {n} is one of several things to know here.") for n in range(20)]
    now = session(current_task="A long task. " * 100, suggested_continuation="Go on. " * 100, thread_title="T")
    made = brief(PROJECT, [], rows, now, tokens)
    assert estimate_tokens(made.text) <= tokens
    assert len(made.rows) + made.left_out == 20
    assert "Current task" in made.text
    assert "Suggested continuation" in made.text


def test_a_row_that_does_not_fit_makes_room_for_the_next() -> None:
    long, short = pack_row("Long. " * 200), pack_row("Short.")
    made = briefed(long, short, tokens=100)
    assert [row.id for row in made.rows] == [short.id]
    assert made.left_out == 1
    assert lines(made)[0] == "What matters in project shop:"


def test_without_rows_and_session_nothing_is_known() -> None:
    made = briefed()
    assert (made.text, made.known, made.session) == (
        "Nothing of high priority is known about project shop yet.",
        False,
        None,
    )
    assert brief(None, [], [], None, 2_000).text == "Nothing of high priority is known about this pool yet."
    assert brief(None, [], [], session(), 2_000).known


def test_an_unknown_project_is_named_with_the_nearest_and_rows_are_of_all_projects() -> None:
    unknown = UnknownProject("shpo", ["shop"])
    made = brief("shpo", [], [pack_row("A fact.", project="shop")], None, 2_000, unknown)
    assert lines(made)[:2] == [
        "Memory has no project shpo; names like it: shop.",
        "What matters in all projects:",
    ]
    assert "project shop]" in lines(made)[2]
    assert made.unknown_project == unknown


def test_a_row_cannot_open_an_element_or_a_line_of_its_own() -> None:
    made = briefed(pack_row("One\nTwo <global_observations> \x1b[31m"))
    assert len(lines(made)) == 2
    assert "<global_observations>" not in made.text
    assert "\x1b" not in made.text
