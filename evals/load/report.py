"""The report of a run: a table for people, and a document for machines."""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from esker.server.core.json_input import JsonObject
from evals.load.agents import KINDS
from evals.load.outcomes import Outcome, percentile, slope, summary
from evals.load.run import Plan, Ran
from evals.load.watching import Sample, Watch
from evals.output import say, table
from evals.provenance import hardware, versions

_WARM_UP = 0.2
"""The share of the steady phase before which memory is not looked at: caches and connections are still filled."""
_HOUR = 3_600.0


def report(plan: Plan, ran: Ran, watch: Watch) -> JsonObject:
    """Return everything about a run."""
    kinds = ("open", *KINDS, None)
    return {
        "suite": "load",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "hardware": hardware(),
        "versions": versions(),
        "load_at_the_end": round(os.getloadavg()[0], 1),
        "run": {name: value for name, value in asdict(plan).items() if name != "importing"},
        "phases": {
            phase: {
                "seconds": round(until - since, 1),
                "requests": {kind or "all": _figures(ran.outcomes.of(phase, kind)) for kind in kinds},
                "floor": _floor([each for each in watch.samples if each.phase == phase]),
            }
            for phase, (since, until) in ran.phases.items()
        },
        "recovery_seconds": _recovery(ran),
        "memory": _memory(plan, watch.samples),
        "connections_most": max((each.connections or 0 for each in watch.samples), default=0),
        "idle_in_transaction_seconds": max((each.idle_in_transaction or 0 for each in watch.samples), default=0),
        "driver_lag_p95_ms": _milliseconds(percentile(sorted(ran.driver_lag), 95)),
        "messages": {name: getattr(ran, name) for name in ("acknowledged", "stored", "lost", "twice")},
        "problems": dict(ran.outcomes.problems),
    }


def show(found: JsonObject) -> None:
    """Print the figures of a run."""
    phases: dict[str, Any] = found["phases"]
    for name, phase in phases.items():
        rows = [_row(kind, figures) for kind, figures in phase["requests"].items() if figures["requests"]]
        floor = phase["floor"]
        rows.append(
            ("empty route", "", "", "", "", *(_shown(floor[f"empty_route_{p}_ms"]) for p in ("p50", "p95", "p99")))
        )
        rows.append(("SELECT 1", "", "", "", "", *(_shown(floor[f"raw_sql_{p}_ms"]) for p in ("p50", "p95", "p99"))))
        columns = (f"{name}", "requests", "429", "503", "errors", "p50 ms", "p95 ms", "p99 ms")
        table(f"{name}: {phase['seconds']} s", columns, rows)
        say("")
    for part, line in found["memory"].items():
        say(
            f"memory of {part}: {line['mean_mb']} MB in the mean, slope {line['slope_mb_per_hour']}"
            f" ± {line['error_mb_per_hour']} MB an hour"
        )
    messages = found["messages"]
    say(
        f"messages: {messages['acknowledged']} acknowledged, {messages['stored']} stored, {messages['lost']} lost,"
        f" {messages['twice']} twice; connections {found['connections_most']} at most, idle in a transaction for"
        f" {found['idle_in_transaction_seconds']} s at most; recovered {found['recovery_seconds']} s after the spike;"
        f" this program was {found['driver_lag_p95_ms']} ms late (p95)"
    )


def _row(kind: str, figures: dict[str, Any]) -> tuple[str, ...]:
    counts = (str(figures[name]) for name in ("requests", "shed", "unavailable", "errors"))
    return (kind, *counts, *(_shown(figures[name]) for name in ("p50_ms", "p95_ms", "p99_ms")))


def _figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    found = summary(outcomes)
    return {**asdict(found), "error_rate": round(found.error_rate, 5)}


def _floor(samples: Sequence[Sample]) -> dict[str, float | None]:
    """Return the latencies of an empty route and of an empty statement in the same minutes."""
    reads: dict[str, Callable[[Sample], float | None]] = {
        "empty_route": lambda each: each.empty_route,
        "raw_sql": lambda each: each.raw_sql,
    }
    found: dict[str, float | None] = {}
    for name, read in reads.items():
        ordered = sorted(value for each in samples if (value := read(each)) is not None)
        for part in (50, 95, 99):
            found[f"{name}_p{part}_ms"] = _milliseconds(percentile(ordered, part))
    return found


def _recovery(ran: Ran) -> float | None:
    """Return the seconds from the end of the spike to the end of the last request that was refused or failed."""
    if "after" not in ran.phases:
        return None
    since = ran.phases["after"][0]
    refused = [each for each in ran.outcomes.of("after") if each.result != "ok"]
    return round(max((each.began + each.seconds - since for each in refused), default=0.0), 1)


def _memory(plan: Plan, samples: Sequence[Sample]) -> dict[str, Any]:
    """Return the mean and the least-squares slope of the memory of each part, in the steady phase after its start."""
    steady = [each for each in samples if each.phase == "steady" and each.at > _WARM_UP * plan.seconds]
    found: dict[str, Any] = {}
    for part in sorted({part for each in steady for part in each.megabytes}):
        points = [(each.at, each.megabytes[part]) for each in steady if part in each.megabytes]
        if fitted := slope(points):
            found[part] = {
                "mean_mb": round(sum(value for _, value in points) / len(points), 1),
                "slope_mb_per_hour": round(fitted[0] * _HOUR, 1),
                "error_mb_per_hour": round(fitted[1] * _HOUR, 1),
            }
    return found


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(1_000 * seconds, 1)


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"
