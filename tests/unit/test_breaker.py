"""A provider that is down costs one call now and then, however many sessions want to ask it."""

import pytest

from esker.server.core.errors import ModelDown, ModelTooSlow, RequestRefused
from esker.server.providers.breaker import Breaker, Breakers


class Seconds:
    """A clock of seconds that moves when told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    """The time."""
    return Seconds()


@pytest.fixture
def breaker(seconds: Seconds) -> Breaker:
    """The breaker of a provider."""
    return Breaker("a provider", seconds)


def fail(breaker: Breaker, error: Exception | None = None) -> None:
    """Make a call that fails."""
    error = error or ModelDown("overloaded")
    with pytest.raises(type(error)), breaker.call():
        raise error


def refuses(breaker: Breaker) -> bool:
    """Return whether no call may be made now; one that may be made says nothing about the provider."""
    try:
        with breaker.call():
            raise ModelTooSlow
    except ModelTooSlow:
        return False
    except ModelDown as error:
        return not error.is_sent


def test_while_a_provider_is_down_one_call_after_each_pause_is_all_it_gets(breaker: Breaker, seconds: Seconds) -> None:
    asked: list[float] = []
    while seconds.now < 3600:
        try:
            with breaker.call():
                asked.append(seconds.now)
                raise ModelDown("overloaded")
        except ModelDown:
            seconds.now += 1
    pauses = [later - earlier for earlier, later in zip(asked, asked[1:], strict=False)]
    assert 45 <= pauses[0] <= 61
    assert 90 <= pauses[1] <= 121
    assert all(225 <= pause <= 301 for pause in pauses[3:])
    assert len(asked) <= 20


def test_a_refused_key_opens_it_for_longer_than_an_overload(breaker: Breaker, seconds: Seconds) -> None:
    fail(breaker, ModelDown("401", reason="key"))
    seconds.now = 220.0
    assert refuses(breaker)
    seconds.now = 301.0
    assert not refuses(breaker)


def test_only_one_call_tries_whether_the_provider_is_back(breaker: Breaker, seconds: Seconds) -> None:
    fail(breaker)
    seconds.now = 61.0
    with breaker.call() as tries:
        assert tries
        assert refuses(breaker)
    assert not refuses(breaker)
    assert breaker.state() is None


@pytest.mark.parametrize("error", [RequestRefused("400"), ModelTooSlow("late"), ModelDown("404", reason="model")])
def test_a_call_that_fails_for_its_own_sake_opens_nothing(breaker: Breaker, error: Exception) -> None:
    fail(breaker, error)
    assert not refuses(breaker)


def test_a_call_that_says_nothing_lets_the_next_one_try(breaker: Breaker, seconds: Seconds) -> None:
    fail(breaker)
    seconds.now = 61.0
    for _ in range(2):
        assert not refuses(breaker)
    assert breaker.state() is not None


def test_calls_that_began_before_it_opened_do_not_lengthen_the_pause(breaker: Breaker, seconds: Seconds) -> None:
    late = breaker.call()
    late.__enter__()
    fail(breaker)
    error = ModelDown("overloaded")
    late.__exit__(ModelDown, error, None)
    assert error.seconds is not None
    seconds.now = 61.0
    assert not refuses(breaker)


def test_a_provider_is_believed_when_it_says_how_long_to_wait(breaker: Breaker, seconds: Seconds) -> None:
    fail(breaker, ModelDown("overloaded", seconds=900.0))
    seconds.now = 899.0
    assert refuses(breaker)
    seconds.now = 901.0
    assert not refuses(breaker)


def test_who_asks_for_it_need_not_wait(breaker: Breaker) -> None:
    fail(breaker, ModelDown("401", reason="key"))
    breaker.try_again()
    assert not refuses(breaker)


def test_a_server_tells_which_providers_it_does_not_ask_and_why() -> None:
    breakers = Breakers()
    assert breakers.of("one") is breakers.of("one")
    fail(breakers.of("one"), ModelDown("401", reason="key"))
    assert not refuses(breakers.of("two"))
    [found] = breakers.open()
    assert (found.provider, found.problem, found.seconds > 200) == ("one", "401", True)
