"""Counts of common words: they are used again while they are nearly right, and only by those who see the same rows."""

from datetime import UTC, datetime, timedelta

import pytest

from esker.server.core.records import Tier
from esker.server.usecases import term_counts
from esker.server.usecases.term_counts import TermCounts

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_only_the_count_of_a_common_word_is_used_again() -> None:
    pool = TermCounts().in_pool("pool", None, NOW)
    pool.keep("memory", 9_000, {"server": 1_000.0, "heron": 999.0})
    assert pool.known("memory", 9_000, ["heron", "server", "otter"]) == {"server": 1_000.0}


def test_a_count_is_made_again_after_five_minutes() -> None:
    counts = TermCounts()
    counts.in_pool("pool", None, NOW).keep("memory", 9_000, {"server": 5_000.0})
    later = [counts.in_pool("pool", None, NOW + timedelta(seconds=seconds)) for seconds in (-1, 0, 299, 300)]
    assert [bool(pool.known("memory", 9_000, ["server"])) for pool in later] == [False, True, True, False]


def test_a_count_is_made_again_when_it_may_be_more_than_one_percent_wrong() -> None:
    pool = TermCounts().in_pool("pool", None, NOW)
    pool.keep("memory", 9_000, {"server": 5_000.0})
    known = [bool(pool.known("memory", 9_000 + more, ["server"])) for more in (-51, -50, 50, 51)]
    assert known == [False, True, True, False]


@pytest.mark.parametrize(
    ("pool_id", "project", "tier"), [("other", None, "memory"), ("pool", "one", "memory"), ("pool", None, "passage")]
)
def test_no_other_pool_project_or_tier_gets_a_count(pool_id: str, project: str | None, tier: Tier) -> None:
    counts = TermCounts()
    counts.in_pool("pool", None, NOW).keep("memory", 9_000, {"server": 5_000.0})
    assert counts.in_pool(pool_id, project, NOW).known(tier, 9_000, ["server"]) == {}


def test_the_words_that_were_not_used_for_longest_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(term_counts, "_MOST", 2)
    pool = TermCounts().in_pool("pool", None, NOW)
    pool.keep("memory", 9_000, {"server": 5_000.0, "test": 4_000.0})
    pool.known("memory", 9_000, ["server"])
    pool.keep("memory", 9_000, {"file": 3_000.0})
    assert pool.known("memory", 9_000, ["server", "test", "file"]).keys() == {"server", "file"}
