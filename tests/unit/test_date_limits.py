"""Limits of the dates that are read: lengths, years and numbers in words, each at its last value and beyond it."""

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from esker.server.core.dates import asked, calendar, mentioned
from esker.server.core.dates.asked import asked_time
from esker.server.core.dates.window import about

# A Wednesday.
NOW = datetime(2023, 5, 24, 10, 0, tzinfo=UTC)


def has_time(query: str) -> bool:
    """Whether a question asks about a time."""
    return asked_time(query, NOW, "UTC") is not None


def anchor_name(query: str) -> str:
    """Return the name of the event from which a question counts."""
    found = asked_time(query, NOW, "UTC")
    assert found
    assert found.anchor
    return found.anchor.words


def longest_match(patterns: Iterable[re.Pattern[str]]) -> int:
    """Return the length of the longest text that one of the patterns matches."""
    parser: Any = re._parser  # type: ignore[attr-defined]
    return max(parser.parse(pattern.pattern, pattern.flags).getwidth()[1] for pattern in patterns)


def test_a_query_of_more_than_a_thousand_characters_asks_about_no_time() -> None:
    assert has_time("yesterday".ljust(1_000))
    assert not has_time("yesterday".ljust(1_001))


@pytest.mark.parametrize(("year", "is_time"), [(1989, False), (1990, True), (2033, True), (2034, False)])
def test_a_number_is_a_year_from_1990_to_ten_years_ahead(year: int, is_time: bool) -> None:
    assert has_time(f"What did we do in {year}?") == is_time


def test_the_name_of_an_event_ends_after_sixty_characters() -> None:
    assert anchor_name(f"three days before {'x' * 59}") == "x" * 59
    assert anchor_name(f"three days before {'x' * 90}") == "x" * 60


def test_the_name_of_an_event_in_chinese_has_at_most_24_characters() -> None:
    assert anchor_name(f"{'甲' * 24}前三天") == "甲" * 24
    assert anchor_name(f"{'甲' * 40}前三天") == "甲" * 24


def test_a_date_is_the_anchor_itself_if_only_an_article_precedes_it() -> None:
    dated, named = (asked_time(f"three days before {word} 3 May", NOW, "UTC") for word in ("the", "boat"))
    assert dated
    assert dated.window
    assert named
    assert named.anchor


def test_closeness_to_a_time_in_hours_falls_by_the_day() -> None:
    for query in ("three hours ago", "in the last three hours"):
        found = asked_time(query, NOW, "UTC")
        assert found
        assert found.window
        assert found.window.grain == timedelta(days=1)


def test_words_before_an_expression_lead_it_up_to_32_characters() -> None:
    assert has_time(f"between {'x' * 19} and 2021")
    assert not has_time(f"between {'x' * 20} and 2021")


def test_the_first_end_of_a_range_has_at_most_24_characters() -> None:
    assert has_time(f"de {'x' * 24} a 2021")
    assert not has_time(f"de {'x' * 25} a 2021")


@pytest.mark.parametrize(
    ("last", "first_beyond"),
    [("fifteen days ago", "sixteen days ago"), ("vor fünfzehn Tagen", "vor sechzehn Tagen")],
)
def test_counts_in_words_are_read_up_to_fifteen(last: str, first_beyond: str) -> None:
    assert has_time(last)
    assert not has_time(first_beyond)


@pytest.mark.parametrize(("unit", "around"), [("day", 0), ("week", 3), ("month", 15), ("year", 182)])
def test_a_time_counted_in_units_is_off_by_half_a_unit(unit: Any, around: int) -> None:
    day = date(2023, 5, 24)
    assert about(day, unit) == (day - timedelta(days=around), day + timedelta(days=around))


def test_the_text_before_a_time_is_searched_as_far_as_its_longest_words_reach() -> None:
    of_a_question = [asked._BETWEEN, asked._BEFORE_TIME, *asked._LIMITS.values()]
    assert longest_match(of_a_question) == asked._LONGEST_LEAD
    assert longest_match([calendar._OF_AN_ID]) == calendar._LONGEST_ID_WORDS
    assert longest_match([mentioned._UNTIL, mentioned._BY]) == mentioned._LONGEST_LEAD
