"""Figures: a measured value, the floor that was measured beside it, and how many times the floor it is."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal

BenchUnit = Literal["ms", "rows/s"]


@dataclass(frozen=True, slots=True)
class Effort:
    """How often each kind of pack, recall, question to the model, search by meaning and page is measured.

    Concurrent clients ask for `seconds`. The worker gets `texts` at a time, in `rounds`.
    """

    packs: int = 40
    recalls: int = 150
    questions: int = 100
    searches: int = 50
    pages: int = 20
    seconds: float = 5.0
    texts: int = 400
    rounds: int = 3


@dataclass(frozen=True, slots=True)
class Timing:
    """The median and the 95th percentile of some durations, in milliseconds."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class BenchFigure:
    """One measured value, for example the median of a pack `at` 10,000 rows, and its floor.

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
        """Return how many times as slow as its floor it is."""
        slow, fast = (self.value, self.floor_value) if self.unit == "ms" else (self.floor_value, self.value)
        return slow / fast if fast else float("inf")


def timing(seconds: Sequence[float]) -> Timing:
    """Return the timing of some durations in seconds."""
    ordered = sorted(seconds)
    return Timing(*(1_000 * ordered[min(len(ordered) - 1, int(len(ordered) * share))] for share in (0.5, 0.95)))


async def timed(times: int, *functions: Callable[[int], Coroutine[Any, Any, object]]) -> list[Timing]:
    """Run each function `times` times, with the run number, and return their timings; the first run is not counted.

    The functions take turns, so that a short load of the machine slows all of them.
    """
    seconds: list[list[float]] = [[] for _ in functions]
    for number in range(times + 1):
        for index, function in enumerate(functions):
            began = perf_counter()
            await function(number)
            seconds[index].append(perf_counter() - began)
    return [timing(samples[1:]) for samples in seconds]
