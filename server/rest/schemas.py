"""The bodies of requests and answers. Answers are the use cases' own records wherever those say it all."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, computed_field

from esker.server.core.context.assembly import ContextTokens
from esker.server.core.context.session_memory import Counters, GroupSummary, MemoryState, PackVersion
from esker.server.core.context.tail import KEEP_LAST_MESSAGES
from esker.server.core.context.usage import UsageReport
from esker.server.core.conversation.records import Block, Role
from esker.server.core.errors import named
from esker.server.core.pack.reasons import PackExplanation
from esker.server.core.records import (
    AskedTier,
    Category,
    JobKind,
    JobState,
    Kind,
    Priority,
    Ranking,
    Reflection,
    Scope,
    SourcedMemory,
    Trust,
)
from esker.server.usecases.recall_request import MAX_LIMIT, MAX_QUERY_CHARACTERS, MAX_WITHOUT, MIN_TOKENS
from esker.server.usecases.receive_event import EventKind
from esker.server.usecases.reflect_pool import BATCH_TOKENS, MIN_TARGET_TOKENS, RowBatch


def _no_blank(value: object) -> object:
    if isinstance(value, str) and not value.strip():
        raise ValueError("must not be blank")
    return value


def _blank_is_none(value: object) -> object:
    return None if isinstance(value, str) and not value.strip() else value


# What stands in an index must fit into one of its entries (2,704 bytes), in any script.
ExternalId = Annotated[str, Field(min_length=1, max_length=512)]
Name = Annotated[str, Field(min_length=1, max_length=64), BeforeValidator(_no_blank)]
PageLimit = Annotated[int, Query(ge=1, le=1_000)]
ProjectName = Annotated[str, Field(min_length=1, max_length=512)]
OptionalProject = Annotated[ProjectName | None, BeforeValidator(_blank_is_none)]
Tag = Annotated[str, Field(min_length=1, max_length=100)]
QueryText = Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARACTERS), BeforeValidator(_no_blank)]


class Lenient(BaseModel):
    """A body of a client that sends transcripts: what we do not know is left aside, never a reason to lose a batch."""

    model_config = ConfigDict(extra="ignore")


class StrictBody(BaseModel):
    """A body in which a misspelt field would change the meaning: what we do not know is refused."""

    model_config = ConfigDict(extra="forbid")


class SessionIn(Lenient):
    """A session as its client knows it."""

    client: Name
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
        """What to do about the error, where there is something."""
        return named(self.error_kind).hint


class SessionDetail(SessionOut):
    """A session with what came of it: groups and observations, superseded ones included, and its jobs."""

    groups: int
    observations: int
    coverage: float
    lost: int
    jobs: list[JobOut]


class MessageOut(BaseModel):
    """A transcript entry as it is kept; `text` is what an observer reads of it."""

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
    """A page of messages, oldest first; `next` is the `after` of the page behind it."""

    messages: list[MessageOut]
    next: int | None


class MessageIn(Lenient):
    """One transcript entry; `content` is a string or a list of blocks as in the Messages API."""

    external_id: ExternalId
    role: Role
    content: JsonValue
    sent_at: datetime | None = None


class MessagesIn(Lenient):
    """A batch of transcript entries, in order."""

    messages: Annotated[list[MessageIn], Field(max_length=10_000)]


class EventIn(StrictBody):
    """Something that happened to a client's context; told again under the same `dedupe_key` it changes nothing."""

    kind: EventKind
    dedupe_key: ExternalId | None = None


class PoolReflectionIn(StrictBody):
    """How the pool is to be condensed."""

    project: ProjectName | None = None
    min_age_days: Annotated[float, Field(ge=0, le=36_500)] | None = None
    target_tokens: Annotated[int, Field(ge=MIN_TARGET_TOKENS, le=BATCH_TOKENS)] | None = None
    dry_run: bool = False


class PoolReflectionPlan(BaseModel):
    """What a reflection of the pool would look at."""

    dry_run: Literal[True]
    rows: int
    tokens: int
    batches: list[RowBatch]


class ReflectionList(BaseModel):
    """A page of reflections; `next` is the `before` of the page behind it."""

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
    """What is to be right of a row from now on; what is left out stays."""

    content: str | None = None
    priority: Priority | None = None
    category: Category | None = None
    tags: Annotated[list[Tag], Field(max_length=64)] | None = None
    external_id: ExternalId | None = None


class MemoriesIn(StrictBody):
    """Rows to write together."""

    memories: Annotated[list[MemoryIn], Field(min_length=1, max_length=1_000)]


class MemoriesOut(BaseModel):
    """The ids of rows that were written, in order."""

    ids: list[str]


class MemoryList(BaseModel):
    """A page of rows; `next` is the `before` of the page behind it."""

    memories: list[SourcedMemory]
    next: str | None


class PassageOut(BaseModel):
    """A window of a session's messages, word for word; `trust` is the least of theirs."""

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
    """A page of sessions; `next` is the `before` of the page behind it."""

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
    """A mark up to which the provider is to cache."""

    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


class SystemBlock(StrictBody):
    """One block of a `system` of the Messages API."""

    type: Literal["text"]
    text: str
    cache_control: CacheControl | None = None


class ContextIn(StrictBody):
    """What a caller wants sent to a model."""

    system: str | Annotated[list[SystemBlock], Field(max_length=1_000)] | None = None
    keep_last_messages: Annotated[int, Field(ge=0, le=10_000)] = KEEP_LAST_MESSAGES
    message_tokens: Annotated[int, Field(ge=0, le=10_000_000)] | None = None
    recall: bool | QueryText | None = None

    @property
    def blocks(self) -> list[Block]:
        """The caller's own blocks; the Messages API takes no blank text."""
        given = [SystemBlock(type="text", text=self.system)] if isinstance(self.system, str) else self.system or []
        return [block.model_dump(exclude_none=True) for block in given if block.text.strip()]


class ContextOut(BaseModel):
    """What to send to the Messages API next."""

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
    """The `usage` of an answer of the Messages API, whatever else it holds, with the model and the request's id."""

    input_tokens: Tokens
    output_tokens: Tokens
    cache_creation_input_tokens: OptionalTokens = 0
    cache_read_input_tokens: OptionalTokens = 0
    model: Annotated[str | None, Field(max_length=256), BeforeValidator(_blank_is_none)] = None
    request_id: ExternalId | None = None


class SessionMemoryOut(BaseModel):
    """What memory has made of one session."""

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
    """A pack with what decided about its rows when it was frozen; None where it is older than explanations are."""

    explanation: PackExplanation | None
