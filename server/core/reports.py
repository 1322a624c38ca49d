"""Reports: what a pool contains, what forgetting or observing changed, and how the server's worker is doing."""

from dataclasses import dataclass
from datetime import datetime

from esker.server.core.counts import counted
from esker.server.core.records import Kind
from esker.server.core.redaction import redact

_LONGEST_LINE = 300  # characters of a worker's output that a report repeats


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """How much a pool holds and how ready it is.

    `memories` are live rows by kind, `superseded` those that were replaced. `pending` texts have no vector yet in the
    space of `model` (None: no space is active), `unobserved_tokens` are those of messages that no observer has seen,
    `jobs` wait or run, and `failed_jobs` are not retried automatically.
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
        why = "there is no embedder" if found.embedder == "none" else f"{found.embedder} is not loaded yet"
        lines.append(f"Nothing can be found by meaning: {why}.")
    elif found.pending:
        lines.append(f"{counted(found.pending, 'text')} cannot be found by meaning yet.")
    else:
        lines.append(f"Everything can be found by meaning ({found.model}).")
    if found.jobs or found.failed_jobs:
        jobs = counted(found.jobs, "job waits or runs", "jobs wait or run")
        lines.append(f"{jobs}, {found.failed_jobs:,} failed permanently (see `esker doctor`).")
    lines.append(f"Observer {found.observer}, reflector {found.reflector}.")
    return "\n".join(lines)


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
class LiveRows:
    """The live rows of a pool, counted by kind, by project (None: of no project), and by week and kind.

    A week is named by the moment at which it begins; the rows before the weeks that were asked for have None.
    """

    kinds: dict[Kind, int]
    projects: dict[str | None, int]
    weeks: dict[tuple[datetime | None, Kind], int]


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


@dataclass(slots=True)
class WorkerHealth:
    """The embedding worker of a server: how often it died in a row, and the last line that it then printed."""

    deaths: int = 0
    last_line: str = ""

    def died(self, printed: str) -> None:
        """Record a death; `printed` is the end of what the worker printed."""
        self.deaths += 1
        lines = [line for line in printed.splitlines() if line.strip()]
        self.last_line = redact(lines[-1].strip())[:_LONGEST_LINE] if lines else ""

    def recovered(self) -> None:
        """Forget the deaths of workers before this one."""
        self.deaths, self.last_line = 0, ""

    def __str__(self) -> str:
        if not self.deaths:
            return "running"
        times = "once" if self.deaths == 1 else f"{self.deaths} times in a row"
        return f"died {times}: {self.last_line or 'it printed nothing'}"
