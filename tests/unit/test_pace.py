"""A model in this process is given as much text at once as it reads in seconds, on an idle and on a busy machine."""

import pytest

from esker.server.core.arrays import Vectors
from esker.server.core.records import Space
from esker.server.providers.local_embedder import LocalEmbedder
from esker.server.providers.pace import SECONDS
from tests.support.vectors import matrix

SPACE = Space("slow_1", "slow", "", 1, "", "slow")


class Slow:
    """A model that takes its time for each character, on a clock of its own."""

    space = SPACE

    def __init__(self, seconds_per_character: float) -> None:
        self.rate = seconds_per_character
        self.now = 0.0

    def of_rows(self, texts: list[str]) -> Vectors:
        """Take the time of all characters."""
        self.now += self.rate * sum(map(len, texts))
        return matrix([1.0] for _ in texts)

    def of_queries(self, texts: list[str]) -> Vectors:
        """Embed questions like rows."""
        return self.of_rows(texts)

    def split(self, texts: list[str]) -> list[list[str]]:
        """Return each text as one part."""
        return [[text] for text in texts]


async def seconds_of_calls(model: Slow, calls: int) -> list[float]:
    """Return how long each of some calls takes that has as much text as the embedder wants."""
    embedder = LocalEmbedder(lambda: model, lambda: model.now)
    await embedder.load()
    taken: list[float] = []
    for _ in range(calls):
        begun = model.now
        await embedder.embed(["x" * embedder.portion])
        taken.append(model.now - begun)
    return taken


async def test_on_a_starved_machine_a_call_soon_takes_seconds_and_not_minutes() -> None:
    # A hundredth of a core, with 0.35 ms of processor time for each character.
    first, second, *_ = await seconds_of_calls(Slow(0.035), 3)
    assert first < 20
    assert second <= SECONDS


async def test_on_an_idle_machine_calls_grow_until_they_take_seconds() -> None:
    taken = await seconds_of_calls(Slow(0.00035), 6)
    assert taken[0] < taken[1] < taken[2]
    assert taken[-1] == pytest.approx(SECONDS, rel=0.01)


async def test_a_machine_that_becomes_busy_is_noticed_in_one_call() -> None:
    model = Slow(0.00035)
    embedder = LocalEmbedder(lambda: model, lambda: model.now)
    await embedder.load()
    for _ in range(6):
        await embedder.embed(["x" * embedder.portion])
    model.rate = 0.035
    await embedder.embed(["x" * embedder.portion])
    assert embedder.portion * model.rate <= SECONDS
