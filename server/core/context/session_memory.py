"""What memory has made of one session, for whoever looks into it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from esker.server.core.context.usage import UsageReport
from esker.server.core.conversation.records import Session
from esker.server.core.pack.records import PackReason
from esker.server.core.records import Job

MemoryState = Literal["empty", "failed", "working", "retrying", "waiting", "up to date"]


@dataclass(frozen=True, slots=True)
class PackVersion:
    """A version that the pack has had; `present` is the one that is served. `sha256` is None once that is forgotten."""

    version: int
    sha256: str | None
    tokens: int
    reason: PackReason
    created_at: datetime
    present: bool


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """A group and what came of it: `observations` and their tokens, and facts that are no row of their own.

    `input_tokens` and `output_tokens` are what its model was sent and wrote.
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
    """How much a session holds. `lost` messages are neither in a group nor waiting for one, and there are none."""

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
    """Everything about the memory of one session. Versions of its pack and groups are newest first."""

    session: Session
    state: MemoryState
    counters: Counters
    coverage: float
    pack_versions: list[PackVersion]
    groups: list[GroupSummary]
    jobs: list[Job]
    usage: UsageReport | None


def state_of(session: Session, jobs: Sequence[Job]) -> MemoryState:
    """Return in one word how a session's memory stands."""
    if any(job.state == "dead" for job in jobs):
        return "failed"
    if any(job.state == "running" for job in jobs):
        return "working"
    if any(job.last_error for job in jobs):
        return "retrying"
    if session.unobserved_tokens:
        return "waiting"
    return "up to date" if session.last_seq else "empty"
