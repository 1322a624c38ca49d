"""The memory of one session as inspection shows it: state, counters, pack versions, groups, jobs and usage."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from esker.server.core.context.usage import UsageReport
from esker.server.core.conversation.records import StoredSession
from esker.server.core.pack.records import PackReason
from esker.server.core.records import Job

MemoryState = Literal["empty", "failed", "working", "retrying", "waiting", "up to date"]


@dataclass(frozen=True, slots=True)
class PackVersion:
    """A version of the pack; the `present` one is served. `sha256` is None after its text was forgotten."""

    version: int
    sha256: str | None
    tokens: int
    reason: PackReason
    created_at: datetime
    present: bool


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """A group and its results: `observations` with their tokens, and facts that were `merged`, `replaced` or `refused`.

    `input_tokens` and `output_tokens` are the observer model's.
    """

    id: str
    first_seq: int
    last_seq: int
    first_external_id: str
    last_external_id: str
    kind: str
    observer: str
    input_tokens: int
    output_tokens: int
    observations: int
    observation_tokens: int
    merged: int
    replaced: int
    refused: dict[str, int]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SessionRowCounts:
    """The rows of a session, live and superseded, and the tokens of the live observations."""

    observations_live: int
    observations_superseded: int
    reflections_live: int
    reflections_superseded: int
    observation_tokens: int


@dataclass(frozen=True, slots=True)
class Counters:
    """Counts of a session. `lost` messages are neither in a group nor waiting for one; there must be none."""

    messages: int
    observed_messages: int
    total_tokens: int
    unobserved_tokens: int
    groups: int
    lost: int
    observations_live: int
    observations_superseded: int
    reflections_live: int
    reflections_superseded: int
    observation_tokens: int
    reflect_at_tokens: int


@dataclass(frozen=True, slots=True)
class SessionMemory:
    """The memory of one session. Pack versions and groups are newest first."""

    session: StoredSession
    state: MemoryState
    counters: Counters
    coverage: float
    pack_versions: list[PackVersion]
    groups: list[GroupSummary]
    jobs: list[Job]
    usage: UsageReport | None


def state_of(session: StoredSession, jobs: Sequence[Job]) -> MemoryState:
    """Return the state of a session's memory in one word; the worst job decides before waiting messages."""
    if any(job.state == "dead" for job in jobs):
        return "failed"
    if any(job.state == "running" for job in jobs):
        return "working"
    if any(job.last_error for job in jobs):
        return "retrying"
    if session.unobserved_tokens:
        return "waiting"
    return "up to date" if session.last_seq else "empty"
