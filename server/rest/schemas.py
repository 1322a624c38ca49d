"""The bodies of requests and answers, as far as answers are not records of the use cases themselves."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import Query
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, computed_field

from esker.server.core.budgets import REFLECTION_TOKENS
from esker.server.core.context.assembly import ContextTokens
from esker.server.core.context.session_memory import Counters, GroupSummary, MemoryState, PackVersion
from esker.server.core.context.tail import KEEP_LAST_MESSAGES
from esker.server.core.context.usage import UsageReport
from esker.server.core.conversation.records import Block, IdScope, Role
from esker.server.core.errors import named
from esker.server.core.facts.forgetting import Quarantine
from esker.server.core.facts.records import Reflection
from esker.server.core.pack.reasons import PackExplanation
from esker.server.core.records import (
    AskedTier,
    Category,
    JobKind,
    JobState,
    Kind,
    Priority,
    Ranking,
    Scope,
    SourcedMemory,
    Trust,
)
from esker.server.usecases.forget import MOST_IDS, MOST_WORDS
from esker.server.usecases.name_project import stored_name
from esker.server.usecases.recall_request import MAX_LIMIT, MAX_QUERY_CHARACTERS, MAX_WITHOUT, MIN_TOKENS
from esker.server.usecases.receive_event import EventKind
from esker.server.usecases.reflect_pool import MIN_TARGET_TOKENS, RowBatch
from esker.server.usecases.retain import MOST_DAYS


def _not_blank(value: object) -> object:
    if isinstance(value, str) and not value.strip():
        raise ValueError("must not be blank")
    return value


def _blank_is_none(value: object) -> object:
    return None if isinstance(value, str) and not value.strip() else value


# Indexed values must fit into one index entry (2,704 bytes), in any script.
ExternalId = Annotated[str, Field(min_length=1, max_length=512)]
ClientName = Annotated[str, Field(min_length=1, max_length=64), BeforeValidator(_not_blank)]
PageLimit = Annotated[int, Query(ge=1, le=1_000)]
NamedProject = Annotated[str, Field(min_length=1, max_length=512)]
ProjectName = Annotated[
    NamedProject, BeforeValidator(_not_blank), AfterValidator(lambda name: stored_name(name) or name)
]
OptionalProject = Annotated[NamedProject | None, BeforeValidator(_blank_is_none)]
Tag = Annotated[str, Field(min_length=1, max_length=100)]
QueryText = Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARACTERS), BeforeValidator(_not_blank)]


class Lenient(BaseModel):
    """A body of a client that sends transcripts: unknown fields are ignored, so that no batch is lost for them."""

    model_config = ConfigDict(extra="ignore")


class StrictBody(BaseModel):
    """A body in which a misspelt field would change the meaning: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class SessionIn(Lenient):
    """A session as its client describes it."""

    client: ClientName
    external_id: ExternalId
    project: OptionalProject = None
    cwd: Annotated[str | None, Field(max_length=4_096), BeforeValidator(_blank_is_none)] = None
    timezone: str | None = None
    effective_context: Annotated[int, Field(ge=1_000, le=10_000_000)] | None = None


class SessionOut(BaseModel):
    """A session and how far it is observed."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    client: str
    external_id: str
    project: str | None
    cwd: str | None
    timezone: str
    effective_context: int
    messages: Annotated[int, Field(validation_alias="last_seq")]
    observed_messages: Annotated[int, Field(validation_alias="observed_seq")]
    total_tokens: int
    unobserved_tokens: int
    last_received_at: datetime | None
    current_task: str | None
    suggested_continuation: str | None
    thread_title: str | None
    begun_at: datetime
    last_sent_at: datetime | None
    created_at: datetime


class JobOut(BaseModel):
    """A job of a session; with an error, `hint` says what to do about it."""

    model_config = ConfigDict(from_attributes=True)

    kind: JobKind
    state: JobState
    run_after: datetime
    attempts: int
    last_error: str | None
    error_kind: str | None

    @computed_field
    @property
    def hint(self) -> str | None:
        """The next step after the error, if there is one."""
        return named(self.error_kind).hint


class SessionDetail(SessionOut):
    """A session with its groups, its observations (superseded ones included) and its jobs."""

    groups: int
    observations: int
    coverage: float
    lost: int
    jobs: list[JobOut]


class MessageOut(BaseModel):
    """A stored transcript entry; `text` is what an observer reads of it."""

    model_config = ConfigDict(from_attributes=True)

    seq: int
    external_id: str
    role: Role
    trust: Trust
    sent_at: datetime
    content: list[dict[str, JsonValue]]
    text: str
    tokens: int


class MessageList(BaseModel):
    """A page of messages, oldest first; `next` is the `after` of the next page."""

    messages: list[MessageOut]
    next: int | None


class MessageIn(Lenient):
    """One transcript entry; `content` is a string or a list of blocks as in the Messages API.

    `id_scope` is where `external_id` is unique: in the `session`, or in all sessions of the `client`. In the latter
    case a message that another session has, such as the one that this session was forked from, is a duplicate.
    """

    external_id: ExternalId
    role: Role
    content: JsonValue
    sent_at: datetime | None = None
    id_scope: IdScope = "session"


class MessagesIn(Lenient):
    """A batch of transcript entries, in order."""

    messages: Annotated[list[MessageIn], Field(max_length=10_000)]


class EventIn(StrictBody):
    """An event of a client's context; repeating it with the same `dedupe_key` changes nothing."""

    kind: EventKind
    dedupe_key: ExternalId | None = None


class PoolReflectionIn(StrictBody):
    """The options of a reflection of the pool."""

    project: ProjectName | None = None
    min_age_days: Annotated[float, Field(ge=0, le=36_500)] | None = None
    target_tokens: Annotated[int, Field(ge=MIN_TARGET_TOKENS, le=REFLECTION_TOKENS)] | None = None
    dry_run: bool = False


class PoolReflectionPlan(BaseModel):
    """The candidates of a reflection of the pool."""

    dry_run: Literal[True]
    rows: int
    tokens: int
    batches: list[RowBatch]


class ReflectionList(BaseModel):
    """A page of reflections; `next` is the `before` of the next page."""

    reflections: list[Reflection]
    next: str | None


class MemoryIn(StrictBody):
    """A row that an agent or a person writes; `manual` pins it."""

    content: str
    kind: Literal["note", "manual"] = "note"
    priority: Priority = "medium"
    category: Category = "fact"
    tags: Annotated[list[Tag], Field(max_length=64)] = []
    project: ProjectName | None = None
    session_id: str | None = None
    said_at: datetime | None = None
    external_id: ExternalId | None = None


class CorrectionIn(StrictBody):
    """The corrected fields of a row; omitted fields keep their value."""

    content: str | None = None
    priority: Priority | None = None
    category: Category | None = None
    tags: Annotated[list[Tag], Field(max_length=64)] | None = None
    external_id: ExternalId | None = None
    pinned: bool | None = None


class ForgetIn(StrictBody):
    """A request to forget `ids` alone, or what says one of `words` within the limits, or all within the limits.

    `source` is a trust (`user`, `assistant`, `tool`, `external`) or the author of memories. `messages` are blanked,
    too, unless ids are given. With `dry_run` nothing changes.
    """

    ids: Annotated[list[Annotated[str, Field(min_length=1, max_length=64)]], Field(max_length=MOST_IDS)] = []
    words: Annotated[list[QueryText], Field(max_length=MOST_WORDS)] = []
    session_id: str | None = None
    project: ProjectName | None = None
    client: ClientName | None = None
    source: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    since: datetime | None = None
    until: datetime | None = None
    messages: bool | None = None
    echoes: bool = True
    dry_run: bool = False


class RenameIn(StrictBody):
    """A project and its new `name`, which with `merge` is that of another project. With `dry_run` nothing changes."""

    project: ProjectName
    name: ProjectName
    merge: bool = False
    dry_run: bool = False


class QuarantineIn(StrictBody):
    """The limits of a quarantine, at least one; they mean the same as those of a request to forget."""

    session_id: str | None = None
    project: ProjectName | None = None
    client: ClientName | None = None
    source: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    since: datetime | None = None
    until: datetime | None = None


Days = Annotated[int, Field(ge=1, le=MOST_DAYS)]


class RetentionIn(StrictBody):
    """How many days a pool keeps each kind of text. The request replaces all values; a kind that it leaves out is kept
    for ever."""

    messages_days: Days | None = None
    images_days: Days | None = None
    passages_days: Days | None = None
    memories_days: dict[Kind, Days] = {}


class QuarantineList(BaseModel):
    """The quarantines of a pool, the latest first."""

    quarantines: list[Quarantine]


class MemoriesIn(StrictBody):
    """Rows to write together."""

    memories: Annotated[list[MemoryIn], Field(min_length=1, max_length=1_000)]


class MemoriesOut(BaseModel):
    """The ids of the written rows, in order."""

    ids: list[str]


class MemoryList(BaseModel):
    """A page of rows; `next` is the `before` of the next page."""

    memories: list[SourcedMemory]
    next: str | None


class PassageOut(BaseModel):
    """A window of a session's messages, verbatim; `trust` is the lowest of theirs."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    session_id: str
    project: str | None
    first_seq: int
    last_seq: int
    text: str
    trust: Trust
    tokens: int
    said_from: datetime
    said_to: datetime


class SessionList(BaseModel):
    """A page of sessions; `next` is the `before` of the next page."""

    sessions: list[SessionOut]
    next: str | None


class RecallIn(StrictBody):
    """A question to memory."""

    query: QueryText
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] = 8
    scope: Scope | None = None
    session_id: str | None = None
    project: ProjectName | None = None
    kinds: Annotated[list[Kind], Field(min_length=1)] | None = None
    tags: Annotated[list[Tag], Field(min_length=1, max_length=64)] | None = None
    min_priority: Priority = "low"
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None
    include_superseded: bool = False
    max_tokens: Annotated[int, Field(ge=MIN_TOKENS)] | None = None
    tier: AskedTier = "both"
    ranking: Ranking = "full"
    explain: bool = False
    timezone: str | None = None
    without: Annotated[list[str], Field(max_length=MAX_WITHOUT)] = []


class CacheControl(StrictBody):
    """A breakpoint up to which the provider caches."""

    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


class SystemBlock(StrictBody):
    """One block of the Messages API's `system`."""

    type: Literal["text"]
    text: str
    cache_control: CacheControl | None = None


class ContextIn(StrictBody):
    """A request for the next context of a session."""

    system: str | Annotated[list[SystemBlock], Field(max_length=1_000)] | None = None
    keep_last_messages: Annotated[int, Field(ge=0, le=10_000)] = KEEP_LAST_MESSAGES
    message_tokens: Annotated[int, Field(ge=0, le=10_000_000)] | None = None
    recall: bool | QueryText | None = None

    @property
    def blocks(self) -> list[Block]:
        """The caller's own blocks, without blank ones, which the Messages API refuses."""
        blocks = [SystemBlock(type="text", text=self.system)] if isinstance(self.system, str) else self.system or []
        return [block.model_dump(exclude_none=True) for block in blocks if block.text.strip()]


class ContextOut(BaseModel):
    """The next request to the Messages API."""

    model_config = ConfigDict(from_attributes=True)

    system: list[dict[str, JsonValue]]
    messages: list[dict[str, JsonValue]]
    first_seq: int | None
    last_seq: int
    left_out: int
    pending_calls: list[str]
    over_budget: bool
    should_observe: bool
    should_reflect: bool
    pack_version: int
    pack_sha256: str
    recalled_ids: list[str]
    semantic: str | None
    tokens: ContextTokens


Tokens = Annotated[int, Field(ge=0, le=1_000_000_000)]
OptionalTokens = Annotated[Tokens, BeforeValidator(lambda value: 0 if value is None else value)]


class UsageIn(Lenient):
    """The `usage` of an answer of the Messages API, with the model and the request's id; other fields are ignored."""

    input_tokens: Tokens
    output_tokens: Tokens
    cache_creation_input_tokens: OptionalTokens = 0
    cache_read_input_tokens: OptionalTokens = 0
    model: Annotated[str | None, Field(max_length=256), BeforeValidator(_blank_is_none)] = None
    request_id: ExternalId | None = None


class SessionMemoryOut(BaseModel):
    """The memory of one session."""

    model_config = ConfigDict(from_attributes=True)

    session: SessionOut
    state: MemoryState
    counters: Counters
    coverage: float
    pack_versions: list[PackVersion]
    groups: list[GroupSummary]
    jobs: list[JobOut]
    usage: UsageReport | None


class PackOut(BaseModel):
    """The frozen text that goes before a session's messages."""

    text: str
    sha256: str
    version: int
    tokens: int
    reason: str
    memory_ids: list[str]
    pins_left: int
    created_at: datetime


class ExplainedPackOut(PackOut):
    """A pack with the reasons for its rows; None for packs frozen before explanations were stored."""

    explanation: PackExplanation | None
