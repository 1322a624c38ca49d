"""Reports: what a pool contains, what forgetting or observing changed, and how the server's worker is doing."""

from dataclasses import dataclass
from datetime import datetime

from esker.server.core.redaction import redact

_LONGEST_LINE = 300  # characters of a worker's output that a report repeats


@dataclass(frozen=True, slots=True)
class Receipt:
    """How much was forgotten; `memories` includes `reflections`.

    `restored` rows had been superseded by a forgotten row, and are live again.
    """

    id: str
    memories: int
    reflections: int
    restored: int
    vectors: int
    packs: int
    messages: int


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
