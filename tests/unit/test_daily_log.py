"""Daily logs: each session in its own time zone, and the same bytes for the same rows."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.pool.daily_log import Logged, LoggedSession, daily_logs, first_line, is_log_name

EVENING = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
SESSIONS = {
    "ses_1": LoggedSession("ses_1", "claude-code", "me/shop", "Asia/Tokyo", "The bridge"),
    "ses_2": LoggedSession("ses_2", "codex", None, "UTC", None),
}


def logged(number: int, content: str = "A fact.", **changes: Any) -> Logged:
    """Return an observation of the first session, `number` minutes after the first one."""
    values: dict[str, Any] = {"session_id": "ses_1", "priority": "medium", "category": "fact", "tentative": False}
    values |= {
        "kind": "observation",
        "trust": "user",
        "said_at": EVENING + timedelta(minutes=number),
        "superseded_by": None,
    }
    return Logged(f"mem_{number}", content=content, **(values | changes))


def test_a_log_has_a_session_header_and_its_observations_with_their_marks() -> None:
    rows = [
        logged(0, "We want a bridge.", priority="high", superseded_by="mem_3"),
        logged(1, "It was built.", category="outcome", superseded_by="mem_reflection"),
        logged(3, "Maybe\na tunnel <!--", priority="low", tentative=True),
        logged(2, "Tests pass.", session_id="ses_2"),
    ]
    assert daily_logs(rows, SESSIONS, None) == {
        "2026-03-01.md": (
            "<!-- Esker's log: written anew by each `esker export daily`, so do not edit it. -->\n\n# 2026-03-01\n\n"
            "## 23:32 UTC · codex\n\n- 🟡 (23:32) Tests pass.\n"
        ),
        "2026-03-02.md": (
            "<!-- Esker's log: written anew by each `esker export daily`, so do not edit it. -->\n\n# 2026-03-02\n\n"
            "## 08:30–08:33 Asia/Tokyo · claude-code · me/shop · The bridge\n\n"
            "- 🔴 (08:30) We want a bridge. (replaced later)\n"
            "- 🟡 ✅ (08:31) It was built.\n"
            "- 🟢 (08:33) Maybe a tunnel &lt;!-- (tentative)\n"
        ),
    }


def test_days_before_since_are_left_out_by_the_time_zone_of_the_session() -> None:
    rows = [logged(0), logged(2, session_id="ses_2")]
    assert set(daily_logs(rows, SESSIONS, None, date(2026, 3, 2))) == {"2026-03-02.md"}


def test_logs_of_different_projects_have_different_first_lines() -> None:
    lines = {first_line(project) for project in (None, "me/shop", "me/other", "a --> b")}
    assert len(lines) == 4
    assert all(line.count("-->") == 1 and "\n" not in line for line in lines)


def test_only_a_date_is_the_name_of_a_log() -> None:
    assert is_log_name("2026-03-02.md")
    assert not any(map(is_log_name, ("2026-03-02.md.bak", "x2026-03-02.md", "2026-3-2.md", "MEMORY.md")))


@given(
    contents=st.lists(st.text(max_size=30), max_size=12),
    order=st.randoms(use_true_random=False),
)
def test_an_observation_of_any_text_is_one_line_of_one_day(contents: Sequence[str], order: Any) -> None:
    rows = [logged(n * 400, content) for n, content in enumerate(contents)]
    logs = daily_logs(rows, SESSIONS, None)
    shuffled = list(rows)
    order.shuffle(shuffled)
    assert daily_logs(shuffled, SESSIONS, None) == logs
    lines = [line for text in logs.values() for line in text.split("\n")]
    assert sum(line.startswith("- 🟡 (") for line in lines) == len(rows)
    assert len(lines) == sum(len(text.splitlines()) + 1 for text in logs.values())
