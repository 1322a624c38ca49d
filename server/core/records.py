"""The records that pass between the layers: frozen, typed, without behaviour. Words are those of the README."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal, NamedTuple, get_args

from server.core.calibration import Calibration, Calibrations
from server.core.json_input import Json

Role = Literal["user", "assistant", "system", "tool"]
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
ReflectionState = Literal["committed", "rejected", "undone"]
Purpose = Literal["observe", "reflect", "recall"]
PackReason = Literal["initial", "reflection", "evicted", "forgotten"]
JobKind = Literal["observe", "reflect", "reflect_pool"]
JobState = Literal["ready", "running", "dead"]

ROLES: tuple[Role, ...] = get_args(Role)
PRIORITIES: tuple[Priority, ...] = get_args(Priority)
KINDS: tuple[Kind, ...] = get_args(Kind)
FACETS: tuple[Facet, ...] = get_args(Facet)


def at_least(least: Priority) -> tuple[Priority, ...]:
    """Return the priorities from `least` up."""
    return PRIORITIES[: PRIORITIES.index(least) + 1]


EXTRACTIVE = "extractive"
"""Who made a row without a language model."""

Block = dict[str, Json]
"""One content block of the Messages API."""


@dataclass(frozen=True, slots=True)
class Pool:
    """A tenant: one body of memory."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation of one client. Token counts are estimates, see `server.core.tokens`.

    `begun_at` is the time of its earliest message or, if that is earlier, when it was opened (`created_at`);
    `last_sent_at` that of its latest message.
    """

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
    reflect_at_tokens: int | None
    pack_version: int
    current_task: str | None
    suggested_continuation: str | None
    thread_title: str | None
    created_at: datetime
    begun_at: datetime
    last_sent_at: datetime | None


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
    """One thing that an observer found worth keeping.

    `trust` is the lowest of its sources. `replaces` names what it supersedes, by id or in words. A `tentative` fact
    was said with a reservation.
    """

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
    replaces: str | None = None
    tentative: bool = False


@dataclass(frozen=True, slots=True)
class TokenUse:
    """What a language model was sent and wrote, in its provider's own tokens; zeros without a model.

    `input_tokens` are those that did not go through the provider's cache.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Observed:
    """One observer call's output.

    `used_ids` are the memories it was shown that the agent really used; `refused` counts the facts that were proposed
    and cannot be kept, by reason.
    """

    facts: tuple[Fact, ...]
    current_task: str | None = None
    suggested_continuation: str | None = None
    thread_title: str | None = None
    used_ids: tuple[str, ...] = ()
    refused: Mapping[str, int] = field(default_factory=dict[str, int])
    used: TokenUse = field(default_factory=TokenUse)


@dataclass(frozen=True, slots=True)
class TranscriptSlice:
    """What an observer is shown: consecutive messages, what the session already keeps, and what its agent was shown.

    `previous` are the session's own latest rows, `known` the rows that came to the agent in a pack or by a recall, and
    `related` those of its project that are about what is said here.
    """

    session: Session
    messages: tuple[Message, ...]
    previous: tuple["Memory", ...]
    known: tuple["Memory", ...] = ()
    related: tuple["Memory", ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """A reflection row that a reflector proposes, drawn from the memories `source_ids`.

    With a `facet` it is a lasting insight for the whole pool beside those memories; without, it stands for them.
    """

    content: str
    priority: Priority
    category: Category
    source_ids: tuple[str, ...]
    facet: Facet | None = None


@dataclass(frozen=True, slots=True)
class ReflectionTask:
    """What a reflector is asked to condense, by time, and into how many tokens at most.

    `vectors` are those of rows that have one, of one space. `level` (0 to 3) grows with every candidate that was no
    good; `complaint` says what was wrong with the last one.
    """

    rows: tuple["Memory", ...]
    target_tokens: int
    timezone: str
    scope: ReflectionScope
    vectors: Mapping[str, Sequence[float]] = field(default_factory=dict[str, Sequence[float]])
    level: int = 0
    complaint: str | None = None


@dataclass(frozen=True, slots=True)
class Reflected:
    """One reflector call's output; no drafts: there is nothing to gain.

    `dropped_ids` are sources that need no row of their own any more. What no draft cites and is not dropped stays.
    """

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
    tentative: bool
    facet: Facet | None
    created_at: datetime


class PackRow(NamedTuple):
    """What a pack has to know of a memory. A pack looks at hundreds, and a tuple is made in a third of the time."""

    id: str
    kind: Kind
    priority: Priority
    category: Category
    content: str
    group_id: str | None
    project: str | None
    tokens: int
    said_at: datetime
    last_used_at: datetime
    tentative: bool


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
    tentative: bool = False
    facet: Facet | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """A window of a session's messages, word for word. `trust` is the least of what its messages are trusted."""

    id: str
    number: int
    session_id: str
    project: str | None
    first_seq: int
    last_seq: int
    text: str
    trust: Trust
    tokens: int
    said_from: datetime
    said_to: datetime


@dataclass(frozen=True, slots=True)
class Source:
    """Where a memory came from: messages of a session for an observation, other memories for a reflection."""

    session_id: str | None
    seqs: list[int]
    memory_ids: list[str]


@dataclass(frozen=True, slots=True)
class SourcedMemory(Memory):
    """A memory with every place that it came from."""

    sources: list[Source]


@dataclass(frozen=True, slots=True)
class SaidAgain:
    """A row that was said once more, in these messages of one group."""

    id: str
    seqs: Sequence[int]
    said_at: datetime
    priority: Priority
    tentative: bool


@dataclass(frozen=True, slots=True)
class Superseder:
    """What replaces a row: a memory or a reflection, and when the newest of it was said."""

    id: str
    said_at: datetime


@dataclass(frozen=True, slots=True)
class Reflection:
    """What one reflection did, or why it did nothing.

    Tokens are those of its inputs and of what takes their place, by our estimator; `input_tokens` and
    `output_tokens` are what its model was sent and wrote.
    """

    id: str
    scope: ReflectionScope
    session_id: str | None
    project: str | None
    reflector: str
    state: ReflectionState
    level: int
    reason: str | None
    input_ids: list[str]
    output_ids: list[str]
    dropped_ids: list[str]
    tokens_before: int
    tokens_after: int
    input_tokens: int
    output_tokens: int
    created_at: datetime
    undone_at: datetime | None


@dataclass(frozen=True, slots=True)
class Spent:
    """What one model cost a pool on one day (UTC) for one purpose; `cost_usd` is None where its price is not known."""

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
    """The frozen text that goes before a session's messages. `pins_left` pinned rows did not fit.

    Versions count from 1; a pack that is being made has none yet.
    """

    text: str
    sha256: str
    tokens: int
    memory_ids: list[str]
    pins_left: int
    reason: PackReason
    created_at: datetime
    version: int = 0


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
    passages: bool
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
    """The right to run one job until `until`, proven by `token`. `subject` is a session, or names work of the pool."""

    pool_id: str
    kind: JobKind
    subject: str
    token: str
    attempts: int
    until: datetime
    options: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Space:
    """An embedding model at one revision, prefix and dimension. `name` is its part of a table name.

    `source` is the setting that makes its embedder, and `calibration` says what its cosines are worth.
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
    """Who is asking: a pool, and what the key allows there."""

    pool_id: str
    pool_name: str
    actor: str
    scopes: frozenset[str]
