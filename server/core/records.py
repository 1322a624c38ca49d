"""The records that pass between the layers: frozen, typed, without behaviour. Words are those of the README."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

from server.core.json_input import Json

Role = Literal["user", "assistant", "system", "tool"]
Trust = Literal["user", "assistant", "tool", "external"]
Priority = Literal["high", "medium", "low"]
Kind = Literal["observation", "reflection", "note", "manual"]
Category = Literal["decision", "preference", "fact", "issue", "next_step", "outcome", "state_change"]
Scope = Literal["session", "project", "pool"]
PackReason = Literal["initial", "reflection", "evicted", "forgotten"]
JobKind = Literal["observe", "reflect"]
JobState = Literal["ready", "running", "dead"]

ROLES: tuple[Role, ...] = get_args(Role)
PRIORITIES: tuple[Priority, ...] = get_args(Priority)
KINDS: tuple[Kind, ...] = get_args(Kind)


def at_least(least: Priority) -> tuple[Priority, ...]:
    """Return the priorities from `least` up."""
    return PRIORITIES[: PRIORITIES.index(least) + 1]


Block = dict[str, Json]
"""One content block of the Messages API."""


@dataclass(frozen=True, slots=True)
class Pool:
    """A tenant: one body of memory."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation of one client. Token counts are estimates, see `server.core.tokens`."""

    id: str
    client: str
    external_id: str
    project: str | None
    cwd: str | None
    timezone: str
    effective_context: int
    last_seq: int
    observed_seq: int
    total_tokens: int
    unobserved_tokens: int
    last_received_at: datetime | None
    pack_version: int
    current_task: str | None
    suggested_continuation: str | None
    thread_title: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Message:
    """One transcript entry. `tokens` is what the whole entry costs a model.

    `text` is what an observer reads of it, `shown_tokens` what that costs together with the images.
    """

    seq: int
    external_id: str
    role: Role
    trust: Trust
    sent_at: datetime
    content: list[Block]
    text: str
    tokens: int
    shown_tokens: int


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message as a client sent it: cleaned and redacted, not yet in its place."""

    external_id: str
    role: Role
    content: list[Block]
    sent_at: datetime


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What became of a batch. `conflicts` are duplicates whose content differs from what is stored."""

    accepted: int
    duplicates: int
    unobserved_tokens: int
    conflicts: list[str]


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that an observer found worth keeping."""

    content: str
    priority: Priority
    category: Category
    trust: Trust
    source_seqs: tuple[int, ...]
    said_at: datetime
    refers_from: datetime | None = None
    refers_to: datetime | None = None
    valid_until: datetime | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenUse:
    """What a language model was sent and wrote, in its provider's own tokens; zeros without a model."""

    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Observed:
    """One observer call's output."""

    facts: tuple[Fact, ...]
    current_task: str | None = None
    suggested_continuation: str | None = None
    thread_title: str | None = None
    used: TokenUse = field(default_factory=TokenUse)


@dataclass(frozen=True, slots=True)
class TranscriptSlice:
    """What an observer is shown: consecutive messages, and what the session already keeps."""

    session: Session
    messages: tuple[Message, ...]
    previous: tuple["Memory", ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """A reflection row that a reflector proposes, standing for the memories `source_ids`."""

    content: str
    priority: Priority
    category: Category
    source_ids: tuple[str, ...]
    said_at: datetime


@dataclass(frozen=True, slots=True)
class Reflected:
    """One reflector call's output. `dropped_ids` are sources that need no row of their own any more."""

    drafts: tuple[Draft, ...]
    dropped_ids: tuple[str, ...] = ()
    used: TokenUse = field(default_factory=TokenUse)


@dataclass(frozen=True, slots=True)
class Memory:
    """One fact. `said_at` is when it was said, `refers_from`/`refers_to` the time it speaks of.

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
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A row to be written. `author` names the observer, reflector or key that made it.

    Without a `last_used_at` a row counts as last used when it was said.
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


@dataclass(frozen=True, slots=True)
class Group:
    """An observation group: the span of messages that one observer call covered."""

    id: str
    first_seq: int
    last_seq: int
    first_external_id: str
    last_external_id: str
    kind: str
    cwd: str | None
    observer: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Pack:
    """The frozen text that goes before a session's messages. `pins_left` pinned rows did not fit."""

    version: int
    text: str
    sha256: str
    tokens: int
    memory_ids: list[str]
    pins_left: int
    reason: PackReason
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Filter:
    """What a list or a recall may see; `visible_memories` in the schema applies it. None leaves a filter out.

    `moment` is the present: what has expired by then is hidden. A project sees its own rows and those of no project.
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
    """A job as it is shown."""

    kind: JobKind
    state: JobState
    run_after: datetime
    attempts: int
    last_error: str | None
    error_kind: str | None


@dataclass(frozen=True, slots=True)
class ListedPool:
    """A pool as it is listed."""

    id: str
    name: str
    keys_required: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ListedKey:
    """A key as it is listed: everything but the key."""

    id: str
    name: str
    prefix: str
    scopes: list[str]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to run one job until `until`, proven by `token`."""

    pool_id: str
    kind: JobKind
    session_id: str
    token: str
    attempts: int
    until: datetime


@dataclass(frozen=True, slots=True)
class Space:
    """An embedding model at one revision, prefix and dimension. `name` is its part of a table name.

    `source` is the setting that makes its embedder.
    """

    name: str
    model: str
    revision: str
    dimension: int
    prefix: str
    source: str


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is asking: a pool, and what the key allows there."""

    pool_id: str
    pool_name: str
    actor: str
    scopes: frozenset[str]
