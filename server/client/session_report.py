"""The memory of one session, as the server reports it."""

from dataclasses import dataclass
from datetime import datetime

from esker.server.core.context.session_memory import Counters, GroupSummary, MemoryState, PackVersion
from esker.server.core.context.usage import UsageReport
from esker.server.core.records import JobKind, JobState


@dataclass(frozen=True, slots=True)
class SessionState:
    """A session and how far it is observed. Tokens are estimates.

    `begun_at` is the time of its earliest message or, if that is earlier, of its opening (`created_at`).
    """

    id: str
    client: str
    external_id: str
    project: str | None
    cwd: str | None
    timezone: str
    effective_context: int
    messages: int
    observed_messages: int
    total_tokens: int
    unobserved_tokens: int
    last_received_at: datetime | None
    current_task: str | None
    suggested_continuation: str | None
    thread_title: str | None
    begun_at: datetime
    last_sent_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SessionJob:
    """A job of a session; with an error, `hint` says what to do about it."""

    kind: JobKind
    state: JobState
    run_after: datetime
    attempts: int
    last_error: str | None
    error_kind: str | None
    hint: str | None


@dataclass(frozen=True, slots=True)
class SessionMemoryReport:
    """The memory of a session. Pack versions and groups are newest first.

    `coverage` is the share (0 to 1) of its messages that are in a group; `usage` is what its model calls used and
    saved, None if none was reported.
    """

    session: SessionState
    state: MemoryState
    counters: Counters
    coverage: float
    pack_versions: list[PackVersion]
    groups: list[GroupSummary]
    jobs: list[SessionJob]
    usage: UsageReport | None
