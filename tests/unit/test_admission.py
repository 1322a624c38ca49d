"""Admission: how many requests are at work, who is next, who is refused, and that turns are neither lost nor kept."""

import asyncio
from collections.abc import Sequence

import pytest

from esker.server.core.errors import TooManyRequests
from esker.server.rest.admission import Admission, Caller

ANN, BEN, EVE = Caller("team", "ann"), Caller("team", "ben"), Caller("other", "eve")


class Door:
    """An admission with one place, whose requests write down when they are admitted or refused."""

    def __init__(self, *, at_work: int = 1, waiting: int = 64, wait_seconds: float = 60.0) -> None:
        self.admission = Admission(at_work, waiting, wait_seconds)
        self.admitted: list[str] = []
        self.refused: list[str] = []
        self.waiting: dict[str, asyncio.Task[None]] = {}

    async def come(self, *named: tuple[str, Caller]) -> None:
        """Let requests come, in this order."""
        for name, caller in named:
            self.waiting[name] = asyncio.create_task(self._enter(name, caller))
            await asyncio.sleep(0)

    async def end(self, caller: Caller) -> None:
        """End a request of a caller, and let the next request record that it was admitted."""
        self.admission.leave(caller)
        await _settle()

    async def _enter(self, name: str, caller: Caller) -> None:
        try:
            await self.admission.enter(caller)
            self.admitted.append(name)
        except TooManyRequests:
            self.refused.append(name)


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def several(caller: Caller, names: str) -> Sequence[tuple[str, Caller]]:
    """Return a request of a caller for each letter."""
    return [(name, caller) for name in names]


async def test_no_more_than_the_limit_are_at_work_and_the_rest_come_in_order() -> None:
    door = Door(at_work=2)
    await door.come(*several(ANN, "abcd"))
    assert (door.admitted, door.admission.at_work, door.admission.waiting) == (["a", "b"], 2, 2)
    for _ in range(4):
        await door.end(ANN)
    assert door.admitted == ["a", "b", "c", "d"]
    assert (door.admission.at_work, door.admission.waiting, door.refused) == (0, 0, [])


async def test_a_key_with_few_requests_does_not_wait_behind_one_with_many() -> None:
    door = Door(at_work=2)
    await door.come(*several(ANN, "aaaaaa"), ("b", BEN))
    await door.end(ANN)
    assert door.admitted == ["a", "a", "b"]


async def test_pools_have_equal_turns_however_many_keys_they_have() -> None:
    door = Door(at_work=2)
    await door.come(("a", ANN), ("b", BEN), ("c", ANN), ("d", BEN), ("e", EVE))
    await door.end(ANN)
    assert door.admitted[-1] == "e"


async def test_when_the_queue_is_full_the_caller_with_most_requests_is_refused() -> None:
    door = Door(waiting=3)
    await door.come(*several(ANN, "abcd"), ("e", ANN))
    await _settle()
    assert door.refused == ["e"], "its own queue is full"
    await door.come(("f", BEN))
    await _settle()
    assert door.refused == ["e", "d"], "the last request of whoever has most"
    await door.come(("g", EVE))
    await _settle()
    assert door.refused == ["e", "d", "c"]
    await door.come(("h", EVE))
    await _settle()
    assert door.refused == ["e", "d", "c", "b"], "now each pool has two"
    await door.come(("i", EVE), ("j", BEN))
    await _settle()
    assert door.refused == ["e", "d", "c", "b", "i", "j"], "nobody is displaced by a caller that would have as many"


async def test_who_waits_too_long_is_refused_with_a_time_to_come_back() -> None:
    door = Door(wait_seconds=0.01)
    await door.admission.enter(ANN)
    with pytest.raises(TooManyRequests) as refused:
        await door.admission.enter(BEN)
    assert refused.value.seconds >= 1
    assert door.admission.waiting == 0


async def test_a_cancelled_request_neither_keeps_a_place_nor_gets_one() -> None:
    door = Door()
    await door.come(("a", ANN), ("b", BEN), ("c", EVE))
    door.waiting["b"].cancel()
    await _settle()
    assert door.admission.waiting == 1
    door.admission.leave(ANN)
    door.waiting["c"].cancel()  # it has its turn, and does not know yet
    await _settle()
    assert (door.admission.at_work, door.admission.waiting) == (0, 0)


async def test_without_a_queue_requests_beyond_the_limit_are_refused_at_once() -> None:
    door = Door(waiting=0)
    await door.come(*several(ANN, "ab"))
    await _settle()
    assert (door.admitted, door.refused) == (["a"], ["b"])
