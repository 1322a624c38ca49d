"""The time that a text refers to, counted from the time and the time zone in which it was said."""

from datetime import UTC, date, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.dates.mentioned import mentioned_time

# A Wednesday.
SAID = datetime(2023, 5, 24, 10, 0, tzinfo=UTC)
WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def days(text: str, said_at: datetime = SAID, timezone: str = "UTC") -> tuple[date, date] | None:
    """Return the first and the last day that a text speaks of."""
    refers = mentioned_time(text, said_at, timezone).refers
    return (refers.start.date(), refers.end.date()) if refers else None


@pytest.mark.parametrize(
    "text",
    [
        "The login broke yesterday.", "Seit gestern geht es nicht.", "On a décidé hier.", "Lo vimos ayer.",
        "昨天我们决定了", "昨日決めた", "That was 1 day ago.", "vor einem Tag", "il y a un jour", "hace un día",
    ],
)  # fmt: skip
def test_yesterday_is_the_day_before_in_every_language(text: str) -> None:
    assert days(text) == (date(2023, 5, 23), date(2023, 5, 23))


@pytest.mark.parametrize(
    "text",
    ["We met last week.", "letzte Woche", "la semaine dernière", "la semana pasada", "上周我们决定", "先週決めた"],
)
def test_last_week_is_a_whole_week_in_every_language(text: str) -> None:
    assert days(text) == (date(2023, 5, 15), date(2023, 5, 21))


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("in 3 days we ship", "2023-05-27", "2023-05-27"),
        ("three weeks ago", "2023-05-03", "2023-05-03"),
        ("next month", "2023-06-01", "2023-06-30"),
        ("last year", "2022-01-01", "2022-12-31"),
        ("on March 3, 2026", "2026-03-03", "2026-03-03"),
        ("am 3. März 2026", "2026-03-03", "2026-03-03"),
        ("am 3. Okt. 2026", "2026-10-03", "2026-10-03"),
        ("le 3 févr. 2026", "2026-02-03", "2026-02-03"),
        ("2026年3月3日", "2026-03-03", "2026-03-03"),
        ("2026-03-03", "2026-03-03", "2026-03-03"),
        ("in December", "2023-12-01", "2023-12-31"),
        ("last Friday", "2023-05-19", "2023-05-19"),
        ("last Wednesday", "2023-05-17", "2023-05-17"),
        ("this Monday we broke it", "2023-05-22", "2023-05-22"),
        ("diesen Montag", "2023-05-22", "2023-05-22"),
        ("this Sunday", "2023-05-28", "2023-05-28"),
        ("next Monday", "2023-05-29", "2023-05-29"),
        ("next Wednesday", "2023-05-31", "2023-05-31"),
        ("We ship by Friday.", "2023-05-26", "2023-05-26"),
        ("the day after tomorrow", "2023-05-26", "2023-05-26"),
        ("on Monday next week", "2023-05-29", "2023-05-29"),
        ("am Freitag letzter Woche", "2023-05-19", "2023-05-19"),
        ("the last Monday in May", "2023-05-29", "2023-05-29"),
        ("in the second half of 2022", "2022-07-01", "2022-12-31"),
        ("in March last year", "2022-03-01", "2022-03-31"),
        ("去年三月", "2022-03-01", "2022-03-31"),
        ("三月五日", "2023-03-05", "2023-03-05"),
        ("in KW 12", "2023-03-20", "2023-03-26"),
        ("in 3days", "2023-05-27", "2023-05-27"),
        ("il y a un an", "2022-01-01", "2022-12-31"),
        ("Вчера всё сломалось", "2023-05-23", "2023-05-23"),
    ],
)
def test_a_time_is_resolved_from_the_day_on_which_it_was_said(text: str, first: str, last: str) -> None:
    assert days(text) == (date.fromisoformat(first), date.fromisoformat(last))


@pytest.mark.parametrize(
    "text",
    [
        "May we deploy?",
        "may 5 of them fail",
        "I mean it.",
        "Guten Morgen",
        "the sun is out",
        "2026-02-30",
        "v3.10",
        "",
        "version 2026-02-03 is out",
    ],
)
def test_a_text_without_a_time_gives_none(text: str) -> None:
    assert mentioned_time(text, SAID, "UTC").refers is None


@pytest.mark.parametrize("text", ["Der Fehler ist hier.", "Hier ist nichts kaputt", "Was machen wir hier?"])
def test_german_hier_is_not_french_yesterday(text: str) -> None:
    assert mentioned_time(text, SAID, "UTC").refers is None


@pytest.mark.parametrize(
    "text", ["The deploy failed on Monday.", "Friday was quiet", "am Montag", "lundi", "el viernes", "周五", "金曜日"]
)
def test_a_bare_weekday_is_ambiguous_and_gives_no_time(text: str) -> None:
    told = mentioned_time(text, SAID, "UTC")
    assert (told.refers, told.valid_until) == (None, None)


@given(st.dates(date(1971, 1, 1), date(2190, 1, 1)), st.sampled_from(WEEKDAYS))
def test_this_weekday_is_in_the_current_week_and_last_and_next_are_nearest_to_today(today: date, name: str) -> None:
    noon = datetime.combine(today, time(12), UTC)
    found = [days(f"{which} {name}", noon) for which in ("last", "this", "next")]
    assert {f"{first:%A}" for first, _ in filter(None, found)} == {name}
    last, this, following = [first for first, _ in filter(None, found)]
    assert today - timedelta(days=7) <= last < today < following <= today + timedelta(days=7)
    assert this.isocalendar()[:2] == today.isocalendar()[:2]


@pytest.mark.parametrize(
    "text",
    [
        "Nobody deploys until Friday.",
        "until on Friday",
        "bis zum Freitag",
        "bis Freitag",
        "hasta el viernes",
        "周五为止",
    ],
)
def test_until_a_day_limits_how_long_a_text_holds(text: str) -> None:
    told = mentioned_time(text, SAID, "UTC")
    assert told.valid_until == datetime(2023, 5, 26, 23, 59, 59, tzinfo=UTC)
    assert told.refers is None


@pytest.mark.parametrize("timezone", ["UTC", "Pacific/Midway", "Pacific/Kiritimati"])
def test_a_day_is_in_the_time_zone_of_the_speaker(timezone: str) -> None:
    local = datetime(2023, 5, 24, 23, 30, tzinfo=UTC)
    told = mentioned_time("yesterday", local, timezone)
    assert told.refers is not None
    offset = {"UTC": 0, "Pacific/Midway": -11, "Pacific/Kiritimati": 14}[timezone]
    today = date(2023, 5, 24 if offset <= 0 else 25)
    assert told.refers.start.date() == date(2023, 5, today.day - 1)
    assert told.refers.start.utcoffset() == local.astimezone(told.refers.start.tzinfo).utcoffset()


@given(st.text(max_size=200), st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2190, 1, 1)))
def test_any_text_gives_a_valid_time_or_none(text: str, at: datetime) -> None:
    told = mentioned_time(text, at.replace(tzinfo=UTC), "Europe/Berlin")
    assert told.refers is None or told.refers.start < told.refers.end
