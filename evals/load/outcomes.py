"""The requests of a run, their results, and the figures of them."""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

Result = Literal["ok", "shed", "unavailable", "error"]
"""The result of a request: answered, refused with 429, refused with 503, or anything else (also no answer)."""
_PERCENTILES = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One request: when it began, in seconds from the start of the run, and how long its answer took."""

    kind: str
    phase: str
    began: float
    seconds: float
    result: Result
    retry_after: bool = True


@dataclass(slots=True)
class Outcomes:
    """The requests of a run. `phase` is the present one, and `problems` says in words what went wrong, by count."""

    phase: str = "steady"
    all: list[Outcome] = field(default_factory=list[Outcome])
    problems: Counter[str] = field(default_factory=Counter[str])

    def of(self, phase: str, kind: str | None = None) -> list[Outcome]:
        """Return the requests of a phase, of one kind or of all."""
        return [each for each in self.all if each.phase == phase and kind in (None, each.kind)]


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of some requests: counts, milliseconds of the answered ones, and the most that a refusal took."""

    requests: int
    ok: int
    shed: int
    unavailable: int
    errors: int
    without_retry_after: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    refused_max_ms: float | None

    @property
    def error_rate(self) -> float:
        """The share of requests that were neither answered nor refused with a time to come back."""
        return (self.errors + self.without_retry_after) / self.requests if self.requests else 0.0


def summary(outcomes: Sequence[Outcome]) -> Summary:
    """Return the figures of these requests."""
    results = Counter(each.result for each in outcomes)
    answered = sorted(each.seconds for each in outcomes if each.result == "ok")
    refused = [each for each in outcomes if each.result in ("shed", "unavailable")]
    p50, p95, p99 = (_milliseconds(percentile(answered, part)) for part in _PERCENTILES)
    return Summary(
        requests=len(outcomes),
        ok=results["ok"],
        shed=results["shed"],
        unavailable=results["unavailable"],
        errors=results["error"],
        without_retry_after=sum(not each.retry_after for each in refused),
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        refused_max_ms=_milliseconds(max((each.seconds for each in refused), default=None)),
    )


def percentile(ordered: Sequence[float], part: float) -> float | None:
    """Return the smallest value that `part` percent of the values do not exceed, or None without a value."""
    return ordered[max(0, math.ceil(len(ordered) * part / 100) - 1)] if ordered else None


def slope(points: Iterable[tuple[float, float]]) -> tuple[float, float] | None:
    """Return the slope of the least-squares line through points, and its standard error; None for fewer than three."""
    pairs = list(points)
    if len(pairs) < 3:
        return None
    xs, ys = zip(*pairs, strict=True)
    fit = statistics.linear_regression(xs, ys)
    mean = statistics.fmean(xs)
    spread = sum((x - mean) ** 2 for x in xs)
    rest = sum((y - fit.intercept - fit.slope * x) ** 2 for x, y in pairs)
    return fit.slope, math.sqrt(rest / (len(pairs) - 2) / spread)


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(1_000 * seconds, 1)
