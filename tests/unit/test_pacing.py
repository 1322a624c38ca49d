"""Pacing: imports go one at a time, rest while others are served, and do not queue up without end."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

import pytest

from esker.server.core.errors import TooManyRequests
from esker.server.rest import pacing
from esker.server.rest.pacing import Pacing


@dataclass
class Others:
    """Requests of others that were `admitted`, and a clock that only work and rests move."""

    admitted: int = 0
    now: float = 100.0

    async def sleep(self, seconds: float) -> None:
        """Rest."""
        self.now += seconds


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> Others:
    """The other requests of a test, whose clock is the one of pacing."""
    made = Others()
    monkeypatch.setattr(pacing, "_sleep", made.sleep)
    return made


@pytest.fixture
def imports(others: Others) -> Pacing:
    """The turns of imports beside them."""
    return Pacing(lambda: others.admitted, lambda: others.now)


async def turn_of(imports: Pacing, others: Others, seconds: float) -> float:
    """Take a turn that lasts `seconds`; return when it began."""
    async with imports.turn():
        began = others.now
        others.now += seconds
    return began


async def test_a_turn_is_followed_by_a_rest_of_its_length_while_others_are_served(
    imports: Pacing, others: Others
) -> None:
    assert await turn_of(imports, others, 10.0) == 100.0
    others.admitted += 1
    assert await turn_of(imports, others, 2.0) == 120.0
    others.admitted += 1
    others.now += 1.5
    assert await turn_of(imports, others, 0.0) == 124.0, "the time until the next part came counts"


async def test_an_import_goes_on_at_once_while_nobody_else_is_served(imports: Pacing, others: Others) -> None:
    await turn_of(imports, others, 10.0)
    assert await turn_of(imports, others, 0.0) == 110.0


async def test_a_part_that_fails_is_followed_by_a_rest_too(imports: Pacing, others: Others) -> None:
    with suppress(ValueError):
        async with imports.turn():
            others.now += 10.0
            raise ValueError
    others.admitted += 1
    assert await turn_of(imports, others, 0.0) == 120.0


async def test_turns_are_taken_one_at_a_time_and_a_few_may_wait(imports: Pacing, others: Others) -> None:
    release = asyncio.Event()
    running: list[int] = []

    async def take(number: int) -> None:
        async with imports.turn():
            running.append(number)
            await release.wait()

    async with asyncio.TaskGroup() as tasks:
        for number in range(5):
            tasks.create_task(take(number))
        for _ in range(3):
            await asyncio.sleep(0)
        assert running == [0]
        with pytest.raises(TooManyRequests):
            await turn_of(imports, others, 0.0)
        release.set()
    assert running == [0, 1, 2, 3, 4]
    await turn_of(imports, others, 0.0)
