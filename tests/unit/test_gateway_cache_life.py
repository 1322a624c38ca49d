"""Whether the provider's cache has ended, by the time since the last request of a session."""

from datetime import timedelta

from esker.server.gateway.cache_life import CacheLife
from tests.support.records import NOON

LASTING = '{"cache_control": {"type": "ephemeral", "ttl": "1h"}}'


def test_a_cache_ends_five_minutes_after_the_last_request_or_after_an_hour_if_it_is_to_last() -> None:
    now = NOON
    life = CacheLife(lambda: now)
    assert not life.has_ended("one", "{}")
    now += timedelta(minutes=5)
    assert not life.has_ended("one", "{}")
    now += timedelta(minutes=5, seconds=1)
    assert not life.has_ended("another", "{}")
    assert life.has_ended("one", "{}")
    assert not life.has_ended("one", "{}")
    now += timedelta(hours=1)
    assert not life.has_ended("one", LASTING)
    now += timedelta(hours=1, seconds=1)
    assert life.has_ended("one", LASTING)


def test_only_the_sessions_that_were_used_last_are_remembered() -> None:
    now = NOON
    life = CacheLife(lambda: now)
    for number in range(501):
        life.has_ended(str(number), "{}")
    now += timedelta(hours=1)
    assert life.has_ended("500", "{}")
    assert life.has_ended("1", "{}")
    assert not life.has_ended("0", "{}")
