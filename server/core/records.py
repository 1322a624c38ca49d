"""Records that several layers use: frozen and typed. Their words are in the glossary of docs/architecture.md."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal, get_args

from esker.server.core.json_input import Json

Trust = Literal["user", "assistant", "tool", "external"]
Priority = Literal["high", "medium", "low"]
Kind = Literal["observation", "reflection", "note", "manual"]
Category = Literal["decision", "preference", "fact", "issue", "next_step", "outcome", "state_change"]
Scope = Literal["session", "project", "pool"]
AskedTier = Literal["memories", "passages", "both"]
Ranking = Literal["keyword", "vector", "fused", "full"]
Tier = Literal["memory", "passage"]
TIERS: tuple[Tier, ...] = get_args(Tier)
Facet = Literal["knowledge", "behavior", "event", "skill"]
ReflectionScope = Literal["session", "pool"]
Purpose = Literal["observe", "reflect", "recall"]
JobKind = Literal["observe", "reflect", "reflect_pool"]
JobState = Literal["ready", "running", "dead"]

PRIORITIES: tuple[Priority, ...] = get_args(Priority)
KINDS: tuple[Kind, ...] = get_args(Kind)


def at_least(least: Priority) -> tuple[Priority, ...]:
    """Return the priorities from `least` up."""
    return PRIORITIES[: PRIORITIES.index(least) + 1]


EXTRACTIVE = "extractive"
"""The author of rows that were made without a language model."""


@dataclass(frozen=True, slots=True)
class Pool:
    """A tenant: one body of memory."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class TokenUse:
    """Tokens that a language model read and wrote, counted by its provider; zeros without a model.

    `input_tokens` excludes tokens that were written to or read from the provider's cache.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0

    @property
    def sent_tokens(self) -> int:
        """All tokens that the model read, cached or not."""
        return self.input_tokens + self.cache_write_tokens + self.cache_read_tokens


@dataclass(frozen=True, slots=True)
class Memory:
    """One fact. `said_at` is when it was said, `refers_from` to `refers_to` the time that it is about.

    `author` is the observer, the reflector or the key that wrote it.
    """

    id: str
    kind: Kind
    priority: Priority
    category: Category
    trust: Trust
    content: str
    author: str
    session_id: str | None
    group_id: str | None
    project: str | None
    tags: list[str]
    source_seqs: list[int]
    source_ids: list[str]
    tokens: int
    said_at: datetime
    refers_from: datetime | None
    refers_to: datetime | None
    valid_until: datetime | None
    last_used_at: datetime
    superseded_by: str | None
    superseded_at: datetime | None
    reflection_id: str | None
    external_id: str | None
    tentative: bool
    facet: Facet | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A row to be written. `author` names the observer, reflector or key that made it.

    `last_used_at` defaults to `said_at`.
    """

    id: str
    kind: Kind
    priority: Priority
    category: Category
    trust: Trust
    content: str
    author: str
    said_at: datetime
    created_at: datetime
    session_id: str | None = None
    group_id: str | None = None
    project: str | None = None
    tags: tuple[str, ...] = ()
    source_seqs: tuple[int, ...] = ()
    source_ids: tuple[str, ...] = ()
    refers_from: datetime | None = None
    refers_to: datetime | None = None
    valid_until: datetime | None = None
    last_used_at: datetime | None = None
    reflection_id: str | None = None
    external_id: str | None = None
    tentative: bool = False
    facet: Facet | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Where a memory came from: messages of a session for an observation, other memories for a reflection."""

    session_id: str | None
    seqs: list[int]
    memory_ids: list[str]


@dataclass(frozen=True, slots=True)
class SourcedMemory(Memory):
    """A memory with all its sources."""

    sources: list[Source]


@dataclass(frozen=True, slots=True)
class Spent:
    """The cost of one model for a pool on one day (UTC), by purpose; `cost_usd` is None if its price is unknown."""

    day: date
    model: str
    purpose: Purpose
    calls: int
    input_tokens: int
    cache_write_tokens: int
    cache_read_tokens: int
    output_tokens: int
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class Filter:
    """Which rows a list or a recall may see; `visible_memories` in the schema applies it. None: not filtered by this.

    `moment` is the present: rows that have expired by then are hidden. A project sees its own rows and those without a
    project.
    """

    moment: datetime

    session: str | None = None
    project: str | None = None
    kinds: Sequence[Kind] | None = None
    priorities: Sequence[Priority] | None = None
    tags: Sequence[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None
    with_superseded: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the API shows it."""

    kind: JobKind
    state: JobState
    run_after: datetime
    attempts: int
    last_error: str | None
    error_kind: str | None


@dataclass(frozen=True, slots=True)
class ListedJob:
    """A job as the operator sees it. `progress_at`: when its run began, or last completed a part of the work."""

    kind: JobKind
    subject: str
    state: JobState
    run_after: datetime
    attempts: int
    last_error: str | None
    error_kind: str | None
    up_to_seq: int
    lease_until: datetime | None
    progress_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ListedPool:
    """A pool as the list of pools shows it."""

    id: str
    name: str
    keys_required: bool
    passages: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ListedKey:
    """A key as the list of keys shows it, without the key itself."""

    id: str
    name: str
    prefix: str
    scopes: list[str]
    client: str | None
    project: str | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_on: date | None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One entry of the audit trail: `actor` (a key's id, `local` or `operator`) did `action` to the id `target`."""

    id: int
    at: datetime
    actor: str
    action: str
    target: str
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to run one job until `until`, proven by `token`. `subject` is a session id, or names pool-wide work."""

    pool_id: str
    kind: JobKind
    subject: str
    token: str
    attempts: int
    until: datetime
    options: Mapping[str, Json]


# Below this weight the answer warns that vector search is weak.
_WEAK = 0.5


@dataclass(frozen=True, slots=True)
class Calibration:
    """How to read a cosine in one script: its mean and deviation between unrelated texts, and its weight, 0 to 1."""

    mean: float
    deviation: float
    weight: float

    @property
    def is_weak(self) -> bool:
        """Whether the model hardly tells texts in this script apart."""
        return self.weight < _WEAK

    def standing_out(self, cosine: float) -> float:
        """Return the z-score of a cosine among cosines of unrelated texts."""
        return (cosine - self.mean) / self.deviation


UNKNOWN = Calibration(mean=0.07, deviation=0.08, weight=1.0)
"""Used for a space that was not measured: the figures of all-MiniLM-L6-v2 for English, rounded."""
Calibrations = Mapping[str, Calibration]


@dataclass(frozen=True, slots=True)
class Space:
    """An embedding model at one revision, prefix and dimension. `name` is its part of a table name.

    `source` is the setting that makes its embedder; `calibration` is by script.
    """

    name: str
    model: str
    revision: str
    dimension: int
    prefix: str
    source: str
    calibration: Calibrations = field(default_factory=dict[str, Calibration])


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller: a pool, the key's name and what the key may do there.

    A key for a `client` writes only its sessions; one for a `project` sees and writes nothing of other projects.
    """

    pool_id: str
    pool_name: str
    actor: str
    scopes: frozenset[str]
    client: str | None = None
    project: str | None = None
