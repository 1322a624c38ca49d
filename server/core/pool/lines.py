"""The lines of a pool's file: everything that a pool remembers, one JSON document per line.

The order is: header; for each session its line, its messages in order, and each observation group after the last
message that it covers; memories, oldest first; reflections; end. Derived data (terms, texts of passages, vectors,
counters) is not included. docs/decisions/pool-file.md says why.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from esker.server.core.clock import EARLIEST, LATEST, zone
from esker.server.core.conversation.records import KeptBy, Role
from esker.server.core.errors import InvalidInput
from esker.server.core.facts.records import ReflectionState
from esker.server.core.invalid_values import problem_with
from esker.server.core.json_input import Json, parse_json
from esker.server.core.pack.records import PackReason
from esker.server.core.project_names import project_name
from esker.server.core.records import Category, Facet, Kind, Priority, ReflectionScope, Trust
from esker.server.core.redaction import redact_content, redact_json, redact_name

FORMAT = "esker-pool"
VERSION = 2
"""The version of the format, increased when an older Esker would misread or refuse a new file."""

LineType = Literal["session", "message", "group", "memory", "reflection"]
TYPES: tuple[LineType, ...] = get_args(LineType)
# Names given by clients: two different ones stay different when masked.
_NAMES = frozenset({"client", "external_id", "first_external_id", "last_external_id", "dedupe_key"})
_NEWER_HINT = "Import it with a newer Esker."


def _in_range(moment: AwareDatetime) -> AwareDatetime:
    if not EARLIEST <= moment < LATEST:
        raise ValueError("the year is outside 1970 to 2199")
    return moment


def _zone(name: str) -> str:
    try:
        return zone(name).key
    except InvalidInput as error:
        raise ValueError(str(error)) from None


Timestamp = Annotated[AwareDatetime, AfterValidator(_in_range)]
NonEmptyText = Annotated[str, Field(min_length=1)]
Hash = Annotated[str, Field(pattern=r"^(?:[0-9a-f]{2})*$")]
NonNegative = Annotated[int, Field(ge=0, lt=2**31)]
Large = Annotated[int, Field(ge=0, lt=2**63)]
Seq = Annotated[int, Field(ge=1, lt=2**63)]
SessionId = Annotated[str, Field(pattern=r"^ses_[0-9a-z]{1,60}$")]
GroupId = Annotated[str, Field(pattern=r"^grp_[0-9a-z]{1,60}$")]
MemoryId = Annotated[str, Field(pattern=r"^mem_[0-9a-z]{1,60}$")]
QuarantineId = Annotated[str, Field(pattern=r"^qua_[0-9a-z]{1,60}$")]
ReflectionId = Annotated[str, Field(pattern=r"^ref_[0-9a-z]{1,60}$")]
PassageId = Annotated[str, Field(pattern=r"^psg_[0-9a-z]{1,60}$")]


class _StrictLine(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Header(_StrictLine):
    """The first line of a file, and of every part that is sent alone. `counts` are lines by type."""

    type: Literal["header"]
    format: str
    version: int
    pool: str
    exported_at: Timestamp
    counts: dict[str, int]


class EventLine(_StrictLine):
    """A handled event, kept so that the same event sent again changes nothing."""

    kind: Annotated[str, Field(pattern=r"^[a-z_]{1,40}$")]
    dedupe_key: str
    received_at: Timestamp


class PackLine(_StrictLine):
    """The pack of a session, with the reasons for its rows. An import renders it anew, since a file could contain any
    text."""

    version: Annotated[int, Field(ge=1, lt=2**31)]
    text: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    tokens: NonNegative
    memory_ids: list[MemoryId]
    pins_left: NonNegative
    reason: PackReason
    created_at: Timestamp
    reasons: list[Any] | None
    left_out_ids: list[MemoryId]
    left_out: list[Any]

    @model_validator(mode="after")
    def _fits(self) -> "PackLine":
        explained = self.reasons is None or len(self.reasons) == len(self.memory_ids)
        if not explained or len(self.left_out) != len(self.left_out_ids):
            raise ValueError("the number of reasons must equal the number of rows")
        return self


ProjectName = Annotated[str, AfterValidator(project_name)]


class SessionLine(_StrictLine):
    """A session with its events and its pack. Its counters are left out: they follow from its messages and groups."""

    type: Literal["session"]
    id: SessionId
    client: NonEmptyText
    external_id: NonEmptyText
    project: ProjectName | None
    cwd: str | None
    timezone: Annotated[str, AfterValidator(_zone)]
    effective_context: Annotated[int, Field(ge=1_000, le=10_000_000)]
    last_seq: Large
    observed_seq: Large
    last_received_at: Timestamp | None
    reflect_at_tokens: Annotated[int, Field(ge=1, lt=2**63)] | None
    pack_version: NonNegative
    current_task: str | None
    suggested_continuation: str | None
    thread_title: str | None
    created_at: Timestamp
    kept_by: KeptBy = "client"
    events: list[EventLine]
    pack: PackLine | None


class PassageMark(_StrictLine):
    """A passage that ends with the message of this line. Its text is derived from its messages."""

    id: PassageId
    first_seq: Seq


class MessageLine(_StrictLine):
    """A stored message. An empty hash means that its text was forgotten; `left_out` keeps it out of passages.

    A file of version 1 has no `passages`; they are cut anew.
    """

    type: Literal["message"]
    session_id: SessionId
    seq: Seq
    external_id: NonEmptyText
    role: Role
    trust: Trust
    sent_at: Timestamp
    received_at: Timestamp
    content: list[dict[str, Any]]
    content_hash: Hash
    calls: dict[str, str]
    text: str
    tokens: Annotated[int, Field(ge=1, lt=2**31)]
    shown_tokens: NonNegative
    left_out: bool
    passages: list[PassageMark] = Field(default_factory=list[PassageMark])

    @model_validator(mode="after")
    def _fits(self) -> "MessageLine":
        if any(passage.first_seq > self.seq for passage in self.passages):
            raise ValueError("a passage must begin before it ends")
        return self


class GroupLine(_StrictLine):
    """An observation group; it comes after the last message that it covers."""

    type: Literal["group"]
    id: GroupId
    session_id: SessionId
    first_seq: Seq
    last_seq: Seq
    first_external_id: str
    last_external_id: str
    kind: Literal["observations"]
    cwd: str | None
    observer: str
    current_task: str | None
    suggested_continuation: str | None
    thread_title: str | None
    input_tokens: Large
    output_tokens: Large
    merged: NonNegative
    replaced: NonNegative
    refused: dict[str, int]
    created_at: Timestamp

    @model_validator(mode="after")
    def _fits(self) -> "GroupLine":
        if self.first_seq > self.last_seq:
            raise ValueError("first_seq must not be greater than last_seq")
        return self


class SourceLine(_StrictLine):
    """Another place where a memory was said."""

    session_id: SessionId
    group_id: GroupId
    seqs: Annotated[list[Seq], Field(min_length=1)]
    said_at: Timestamp


class MemoryLine(_StrictLine):
    """A memory, live or superseded, with every other place where it was said.

    `outdated_at` is -infinity for a row of a reflection that was undone: it was never true by itself.
    """

    type: Literal["memory"]
    id: MemoryId
    kind: Kind
    priority: Priority
    category: Category
    trust: Trust
    content: NonEmptyText
    author: str
    session_id: SessionId | None
    group_id: GroupId | None
    project: ProjectName | None
    tags: list[str]
    source_seqs: list[Seq]
    source_ids: list[MemoryId]
    said_at: Timestamp
    refers_from: AwareDatetime | None
    refers_to: AwareDatetime | None
    valid_until: AwareDatetime | None
    last_used_at: Timestamp
    superseded_by: MemoryId | ReflectionId | QuarantineId | None
    superseded_at: Timestamp | None
    outdated_at: Timestamp | Literal["-infinity"] | None
    reflection_id: ReflectionId | None
    external_id: str | None
    left_alone: bool
    tentative: bool
    facet: Facet | None
    created_at: Timestamp
    sources: list[SourceLine]

    @model_validator(mode="after")
    def _fits(self) -> "MemoryLine":
        """Check the constraints of the table here, so that the error names the line."""
        unset = {self.superseded_by is None, self.superseded_at is None, self.outdated_at is None}
        if len(unset) > 1:
            raise ValueError("superseded_by, superseded_at and outdated_at must be set together")
        if (self.kind == "observation") != (self.group_id is not None and bool(self.source_seqs)):
            raise ValueError("an observation must have a group_id and source messages; other rows must not")
        if (self.kind == "reflection") != (self.reflection_id is not None and bool(self.source_ids)):
            raise ValueError("a row of a reflection must have a reflection_id and source rows; other rows must not")
        if self.refers_to and (self.refers_from is None or self.refers_from > self.refers_to):
            raise ValueError("refers_to must not be before refers_from")
        if self.facet and (self.kind != "reflection" or self.session_id):
            raise ValueError("only a row of a reflection of the whole pool may have a facet")
        return self


class ReflectionLine(_StrictLine):
    """One reflection: its inputs and outputs, and why it was rejected or when it was undone."""

    type: Literal["reflection"]
    id: ReflectionId
    scope: ReflectionScope
    session_id: SessionId | None
    project: ProjectName | None
    reflector: str
    state: ReflectionState
    level: Annotated[int, Field(ge=0, le=3)]
    reason: str | None
    input_ids: list[MemoryId]
    output_ids: list[MemoryId]
    dropped_ids: list[MemoryId]
    tokens_before: NonNegative
    tokens_after: NonNegative
    input_tokens: Large
    output_tokens: Large
    created_at: Timestamp
    undone_at: Timestamp | None

    @model_validator(mode="after")
    def _fits(self) -> "ReflectionLine":
        if (self.scope == "session") != (self.session_id is not None):
            raise ValueError("session_id must be set if the scope is session, and only then")
        if (self.state == "rejected") != (self.reason is not None):
            raise ValueError("reason must be set if the state is rejected, and only then")
        if (self.state == "undone") != (self.undone_at is not None):
            raise ValueError("undone_at must be set if the state is undone, and only then")
        if self.state != "rejected" and self.tokens_after >= self.tokens_before:
            raise ValueError("tokens_after must be smaller than tokens_before")
        return self


class End(_StrictLine):
    """The last line; a file without it was truncated. `counts` are lines by type."""

    type: Literal["end"]
    counts: dict[str, int]


_MODELS: Mapping[str, type[BaseModel]] = {
    "session": SessionLine,
    "message": MessageLine,
    "group": GroupLine,
    "memory": MemoryLine,
    "reflection": ReflectionLine,
    "end": End,
}

AnyLine = TypeVar("AnyLine", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class ImportBatch:
    """Lines that are imported together, by type and line number."""

    header: Header
    sessions: dict[int, SessionLine] = field(default_factory=dict[int, SessionLine])
    messages: dict[int, MessageLine] = field(default_factory=dict[int, MessageLine])
    groups: dict[int, GroupLine] = field(default_factory=dict[int, GroupLine])
    memories: dict[int, MemoryLine] = field(default_factory=dict[int, MemoryLine])
    reflections: dict[int, ReflectionLine] = field(default_factory=dict[int, ReflectionLine])
    ends: dict[int, End] = field(default_factory=dict[int, End])

    @property
    def counts(self) -> dict[LineType, int]:
        """How many lines of each type there are."""
        listed = (self.sessions, self.messages, self.groups, self.memories, self.reflections)
        return {name: len(lines) for name, lines in zip(TYPES, listed, strict=True)}


def read_batch(body: bytes, first_line: int) -> ImportBatch:
    """Read the header of a file and its lines from number `first_line` on. Secrets in them are masked.

    Raises InvalidInput, with the number, for a line that is broken, unknown or a duplicate.
    """
    head, _, rest = body.partition(b"\n")
    batch = ImportBatch(read_header(head))
    seen: dict[object, int] = {}
    for number, text in enumerate(rest.split(b"\n"), start=first_line):
        if not text.strip():
            continue
        line = _read_line(text, number)
        if (first := seen.setdefault(_key(line, number), number)) != number:
            raise InvalidInput(f"Line {number}: duplicate of line {first}.")
        _add(batch, number, line)
    return batch


def _add(batch: ImportBatch, number: int, line: BaseModel) -> None:
    match line:
        case SessionLine():
            batch.sessions[number] = line
        case MessageLine():
            batch.messages[number] = line
        case GroupLine():
            batch.groups[number] = line
        case MemoryLine():
            batch.memories[number] = line
        case ReflectionLine():
            batch.reflections[number] = line
        case End():
            batch.ends[number] = line
        case _:
            raise AssertionError(line)  # all types of lines are handled above


def read_header(text: bytes) -> Header:
    """Read the first line of a file. Raises InvalidInput if it is not a header, or of a newer version."""
    found = _parsed(text, 1)
    if found.get("type") != "header" or found.get("format") != FORMAT:
        raise InvalidInput("Line 1: not the header of a pool's file.", hint="`esker export jsonl` writes such a file.")
    version = found.get("version")
    if isinstance(version, int) and version > VERSION:
        raise InvalidInput(
            f"The file has format version {version}; this Esker reads version {VERSION}.", hint=_NEWER_HINT
        )
    return _valid(Header, found, 1)


def _read_line(text: bytes, number: int) -> BaseModel:
    found = _parsed(text, number)
    model = _MODELS.get(str(found.get("type")))
    if model is None:
        raise InvalidInput(
            f"Line {number}: unknown type {str(found.get('type'))[:40]!r}.",
            hint=f"Known types: {', '.join(_MODELS)}.",
        )
    masked = {name: _masked(name, value) for name, value in found.items()}
    return _valid(model, masked, number)


def _parsed(text: bytes, number: int) -> dict[str, Json]:
    try:
        found = parse_json(text)
    except InvalidInput as error:
        raise InvalidInput(f"Line {number}: {error}") from error
    if not isinstance(found, dict):
        raise InvalidInput(f"Line {number}: not a JSON object.")
    return found


def _valid(model: type[AnyLine], found: Mapping[str, Json], number: int) -> AnyLine:
    try:
        return model.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        problem = problem_with(".".join(map(str, first["loc"])), first)
        raise InvalidInput(f"Line {number}: {problem}.") from None


def _masked(name: str, value: Json) -> Json:
    """Return a member of a line with its secrets masked; a value that was masked before storage does not change."""
    match value:
        case str() if name in _NAMES:
            return redact_name(value)
        case list() if name == "events":
            return [
                {key: _masked(key, item) for key, item in each.items()} if isinstance(each, dict) else each
                for each in value
            ]
        case _:
            return redact_content(value) if name == "content" else redact_json(value)


def _key(line: BaseModel, number: int) -> object:
    """Return the identity of the record in a line."""
    match line:
        case MessageLine():
            return line.session_id, line.seq
        case SessionLine() | GroupLine() | MemoryLine() | ReflectionLine():
            return line.id
        case _:
            return number
