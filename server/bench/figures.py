"""Figures: a measured value, the floor that was measured beside it, and how many times the floor it is."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal

BenchUnit = Literal["ms", "rows/s"]


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured: so many packs, recalls, questions to the model and searches by meaning, of each sort.

    `seconds` is for how long clients ask at once. The worker gets so many `texts` at a time, so many `rounds`.
    """

    packs: int = 40
    recalls: int = 150
    questions: int = 100
    searches: int = 50
    seconds: float = 5.0
    texts: int = 400
    rounds: int = 3


@dataclass(frozen=True, slots=True)
class Timing:
    """How long something took, in milliseconds: the median, and what nineteen of twenty did not exceed."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class BenchFigure:
    """One measured value, for example the median of a pack `at` 10,000 rows, and the floor that it stands on.

    `more` has what else was measured with it, by name.
    """

    name: str
    at: str
    unit: BenchUnit
    value: float
    floor: str
    floor_value: float
    more: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def ratio(self) -> float:
        """Return how many times as long as its floor it takes."""
        slow, fast = (self.value, self.floor_value) if self.unit == "ms" else (self.floor_value, self.value)
        return slow / fast if fast else float("inf")


def timing(seconds: Sequence[float]) -> Timing:
    """Return the timing of some samples."""
    ordered = sorted(seconds)
    return Timing(*(1_000 * ordered[min(len(ordered) - 1, int(len(ordered) * share))] for share in (0.5, 0.95)))


async def timed(times: int, *things: Callable[[int], Coroutine[Any, Any, object]]) -> list[Timing]:
    """Do each thing so many times, with its number, and return how long each took; the first time does not count.

    They take turns, so that a machine which is busy for a moment is so for all of them.
    """
    seconds: list[list[float]] = [[] for _ in things]
    for number in range(times + 1):
        for place, thing in enumerate(things):
            began = perf_counter()
            await thing(number)
            seconds[place].append(perf_counter() - began)
    return [timing(samples[1:]) for samples in seconds]
