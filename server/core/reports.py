"""Reports: what a pool contains, what forgetting or observing changed, and how the server's worker is doing."""

from dataclasses import dataclass
from datetime import datetime

from esker.server.core.counts import counted
from esker.server.core.records import Kind
from esker.server.core.worker_health import RUNNING, explained


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """How much a pool holds and how ready it is.

    `memories` are live rows by kind, `superseded` those that were replaced. `pending` texts have no vector yet in the
    space of `model` (None: no space is active), `unobserved_tokens` are those of messages that no observer has seen,
    `jobs` wait or run, and `failed_jobs` are not retried automatically. `worker` is the state of the server's embedding
    worker (none: it has none). It embeds `vectors_per_minute` of the pool's texts, so `pending` takes `seconds_left`;
    None: not known.
    """

    pool: str
    memories: dict[str, int]
    superseded: int
    passages: int
    sessions: int
    messages: int
    unobserved_tokens: int
    pending: int
    jobs: int
    failed_jobs: int
    last_message_at: datetime | None
    last_memory_at: datetime | None
    model: str | None
    embedder: str
    observer: str
    reflector: str
    worker: str = "none"
    vectors_per_minute: float | None = None
    seconds_left: float | None = None


def status_text(found: PoolStatus) -> str:
    """Return a status as text."""
    kinds = ", ".join(f"{count:,} of kind {kind}" for kind, count in sorted(found.memories.items()))
    held = f"{counted(sum(found.memories.values()), 'memory')}{f' ({kinds})' if kinds else ''}"
    last = f", the last received at {found.last_message_at:%Y-%m-%d %H:%M} UTC" if found.last_message_at else ""
    lines = [
        f"Pool {found.pool}: {held}, {found.superseded:,} superseded, {counted(found.passages, 'passage')}.",
        f"{counted(found.messages, 'message')} of {counted(found.sessions, 'session')}{last}.",
    ]
    if found.unobserved_tokens:
        waiting = counted(found.unobserved_tokens, "token of messages is", "tokens of messages are")
        lines.append(f"{waiting} not observed yet.")
    if found.model is None:
        model = "the model" if found.embedder.endswith(".") else found.embedder  # or the sentence why it does not work
        why = "there is no embedder" if found.embedder == "none" else f"{model} is not loaded yet"
        lines.append(f"Nothing can be found by meaning: {why}.")
    elif found.pending:
        lines.append(f"{counted(found.pending, 'text')} cannot be found by meaning yet; {_speed(found)}.")
    else:
        lines.append(f"Everything can be found by meaning ({found.model}).")
    if found.jobs or found.failed_jobs:
        jobs = counted(found.jobs, "job waits or runs", "jobs wait or run")
        help_ = " (see `esker doctor`)" if found.failed_jobs else ""
        lines.append(f"{jobs}, {found.failed_jobs:,} failed permanently{help_}.")
    if found.worker != RUNNING and (about := explained(found.worker)):
        lines.append(f"{about['what']} {about['hint']}")
    lines.append(f"Observer {found.observer}, reflector {found.reflector}.")
    return "\n".join(lines)


def _speed(found: PoolStatus) -> str:
    """Return how long the texts without a vector will take."""
    if found.vectors_per_minute is None or found.seconds_left is None:
        return "it is not known how long that takes"
    minutes = found.seconds_left / 60
    left = f"{minutes:.0f} minutes" if minutes >= 2 else f"{found.seconds_left:.0f} seconds"
    return f"at {found.vectors_per_minute:,.0f} a minute this takes some {left}"


@dataclass(frozen=True, slots=True)
class Measure:
    """A number that an operator watches, of a kind of work and a state, which may be empty."""

    measure: str
    kind: str
    state: str
    value: float


@dataclass(frozen=True, slots=True)
class ProjectSummary:
    """A project, the number of its live memories, and the time of the latest one."""

    project: str
    memories: int
    latest_at: datetime


@dataclass(frozen=True, slots=True)
class ProjectCounts:
    """How many rows of each kind a project has, superseded memories included."""

    sessions: int
    memories: int
    passages: int
    reflections: int
    quarantines: int


@dataclass(frozen=True, slots=True)
class ProjectMove:
    """A renamed or merged project: what `moved` to the name, or with `dry_run` would, and what that had before.

    `repeated`: it was done before, and nothing changed.
    """

    project: str
    name: str
    moved: ProjectCounts
    there: ProjectCounts
    dry_run: bool
    repeated: bool


@dataclass(frozen=True, slots=True)
class RowsOfAge:
    """How many live rows of a kind were said in a week and a month, each named by the moment at which it begins.

    None: before the weeks, or the months, that were asked for.
    """

    kind: Kind
    week: datetime | None
    month: datetime | None
    rows: int


@dataclass(frozen=True, slots=True)
class LiveRows:
    """The live rows of a pool, counted by kind, by project (None: of no project), and by age and kind."""

    kinds: dict[Kind, int]
    projects: dict[str | None, int]
    ages: list[RowsOfAge]


@dataclass(frozen=True, slots=True)
class ClientSummary:
    """A client, the number of its sessions and messages, and the time at which its latest message arrived."""

    client: str
    sessions: int
    messages: int
    latest_at: datetime | None


@dataclass(frozen=True, slots=True)
class ObserveReport:
    """The result of observing a session; `queued`: it will run in the background.

    `merged` counts facts that were already a row, `refused` counts rejected facts by reason, and `replaced` counts
    rows that new facts superseded.
    """

    groups: int
    memories: int
    merged: int
    replaced: int
    refused: dict[str, int]
    observer: str
    queued: bool
    group_ids: list[str]
    memory_ids: list[str]
