"""Counts of texts without a vector: a long queue is counted once in two seconds, a short one for each recall."""

from datetime import UTC, datetime, timedelta

from esker.server.usecases.pending_counts import PendingCounts

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_a_large_count_is_used_for_two_seconds() -> None:
    pending = PendingCounts()
    assert pending.keep("pool", None, NOW, 1_001) == 1_001
    later = [pending.recent("pool", None, NOW + timedelta(seconds=seconds)) for seconds in (-1, 0, 1.9, 2)]
    assert later == [None, 1_001, 1_001, None]


def test_a_count_up_to_a_thousand_is_made_anew() -> None:
    pending = PendingCounts()
    assert pending.keep("pool", None, NOW, 1_000) == 1_000
    assert pending.recent("pool", None, NOW) is None


def test_no_other_pool_and_no_key_of_a_project_gets_the_count() -> None:
    pending = PendingCounts()
    pending.keep("pool", None, NOW, 5_000)
    pending.keep("pool", "one", NOW, 2_000)
    views = [("pool", None), ("pool", "one"), ("pool", "two"), ("other", None)]
    assert [pending.recent(pool, project, NOW) for pool, project in views] == [5_000, 2_000, None, None]
