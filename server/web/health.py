"""The health of a server and a pool in lines, each with its reason, and what helps if something is wrong."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from esker.server.core.counts import counted
from esker.server.core.reports import PoolStatus
from esker.server.core.worker_health import explained, is_alive
from esker.server.usecases.report_status import Readiness

Degree = Literal["ok", "waiting", "wrong"]


@dataclass(frozen=True, slots=True)
class HealthLine:
    """One thing that is well, waits for something, or is wrong; `state` gives the reason."""

    name: str
    degree: Degree
    state: str
    help: str = ""


def health_of(
    readiness: Readiness, pool: PoolStatus, backlog: Mapping[str, float] | None, broken: str | None
) -> list[HealthLine]:
    """Return a line for each part, those that are wrong first. `broken`: why the embedder does not work.

    `backlog` is None for a caller who may not know how well the messages of the whole pool are covered.
    """
    lines = [*_of_server(readiness, broken), *_of_pool(pool, backlog)]
    return sorted(lines, key=lambda line: ("wrong", "waiting", "ok").index(line.degree))


def _of_server(found: Readiness, broken: str | None) -> Iterator[HealthLine]:
    states = (
        ("Database", found.database, {"ok": "answers"}),
        ("Disk", found.disk, {"ok": "has room"}),
        ("Job runner", found.jobs, {"ok": "runs"}),
        (
            "Language model",
            found.language_model,
            {"ok": "answers", "none": "not used: memories are written without one"},
        ),
    )
    for name, state, said in states:
        yield HealthLine(name, "ok" if state in said else "wrong", said.get(state, state))
    yield HealthLine("Embedder", "wrong" if broken else "ok", broken or found.embedder)
    about = explained(found.worker)
    worker: Degree = "wrong" if not is_alive(found.worker) else "waiting" if about else "ok"
    yield HealthLine("Embedding worker", worker, found.worker, about.get("hint", ""))


def _of_pool(pool: PoolStatus, backlog: Mapping[str, float] | None) -> Iterator[HealthLine]:
    share = (
        f"{100 * backlog['lowest_coverage']:.1f} % of the messages are in a group in the least observed session"
        if backlog
        else ""
    )
    if lost := int(backlog["lost_messages"]) if backlog else 0:
        yield HealthLine("Coverage", "wrong", f"{counted(lost, 'message is', 'messages are')} in no group", share)
    elif pool.unobserved_tokens:
        waits = f"{counted(pool.unobserved_tokens, 'token', 'tokens')} of messages wait for the observer"
        yield HealthLine("Coverage", "waiting", waits, share)
    else:
        yield HealthLine("Coverage", "ok", "every message is observed")
    if pool.model is None:
        is_off = pool.embedder == "none"
        why = "off, since there is no embedder" if is_off else f"no model of this pool is loaded: {pool.embedder}"
        yield HealthLine("Search by meaning", "ok" if is_off else "waiting", why)
    elif pool.pending:
        yield HealthLine(
            "Search by meaning", "waiting", f"{counted(pool.pending, 'text waits', 'texts wait')} for a vector"
        )
    else:
        yield HealthLine("Search by meaning", "ok", f"every text has a vector of {pool.model}")
    if pool.failed_jobs:
        help_ = "Operations shows the errors; `esker doctor --retry` tries them again."
        yield HealthLine("Jobs", "wrong", f"{counted(pool.failed_jobs, 'job', 'jobs')} failed for good", help_)
    elif pool.jobs:
        # One waits nearly always: the reflection of the pool, for its next day.
        yield HealthLine("Jobs", "ok", f"{counted(pool.jobs, 'job waits or runs', 'jobs wait or run')}")
    else:
        yield HealthLine("Jobs", "ok", "none waits")
