"""Records of facts: the input and output of observers and reflectors, and the result of a reflection."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from esker.server.core.arrays import Vector
from esker.server.core.conversation.records import StoredMessage, StoredSession
from esker.server.core.records import Category, Facet, Memory, Priority, ReflectionScope, TokenUse, Trust

ReflectionState = Literal["committed", "rejected", "undone"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that an observer found worth keeping.

    `trust` is the lowest of its sources. `replaces` names the memories that it supersedes, one a line: by its id or in
    words. A `tentative` fact was said with a reservation.
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
class Observed:
    """One observer call's output.

    `used_ids` are the memories it was shown that the agent really used; `refused` counts the facts that were proposed
    and cannot be kept, by reason. Messages after `last_seq` are still to be observed; None: the whole slice was.
    """

    facts: tuple[Fact, ...]
    current_task: str | None = None
    suggested_continuation: str | None = None
    thread_title: str | None = None
    used_ids: tuple[str, ...] = ()
    refused: Mapping[str, int] = field(default_factory=dict[str, int])
    last_seq: int | None = None
    used: TokenUse = field(default_factory=TokenUse)


@dataclass(frozen=True, slots=True)
class TranscriptSlice:
    """The input of an observer: consecutive messages, and rows that exist already.

    `previous` are the session's own latest rows, `known` the rows that came to the agent in a pack or by a recall, and
    `related` rows of its project about the same subjects.
    """

    session: StoredSession
    messages: tuple[StoredMessage, ...]
    previous: tuple["Memory", ...]
    known: tuple["Memory", ...] = ()
    related: tuple["Memory", ...] = ()

    def up_to(self, seq: int | None) -> "TranscriptSlice":
        """Return the slice without the messages after `seq`; None keeps all."""
        if seq is None:
            return self
        return replace(self, messages=tuple(message for message in self.messages if message.seq <= seq))


@dataclass(frozen=True, slots=True)
class Draft:
    """A reflection row that a reflector proposes, drawn from the memories `source_ids`.

    With a `facet` it is a lasting insight for the whole pool beside those memories; without one it replaces them.
    """

    content: str
    priority: Priority
    category: Category
    source_ids: tuple[str, ...]
    facet: Facet | None = None


@dataclass(frozen=True, slots=True)
class ReflectionTask:
    """The rows that a reflector condenses, by time, and the maximum tokens of the result.

    `vectors` are those of one space, for the rows that have one. `level` (0 to 3) rises with every rejected candidate;
    `complaint` says why the last one was rejected.
    """

    rows: tuple["Memory", ...]
    target_tokens: int
    timezone: str
    scope: ReflectionScope
    vectors: Mapping[str, Vector] = field(default_factory=dict[str, Vector])
    level: int = 0
    complaint: str | None = None


@dataclass(frozen=True, slots=True)
class Reflected:
    """One reflector call's output; without drafts there is nothing to gain.

    `dropped_ids` are sources that are dropped without a replacement. Rows that are neither cited nor dropped stay.
    """

    drafts: tuple[Draft, ...]
    dropped_ids: tuple[str, ...] = ()
    used: TokenUse = field(default_factory=TokenUse)


@dataclass(frozen=True, slots=True)
class Restatement:
    """A row that was repeated in these messages of one group."""

    id: str
    seqs: Sequence[int]
    said_at: datetime
    priority: Priority
    tentative: bool


@dataclass(frozen=True, slots=True)
class Superseder:
    """The memory or reflection that replaces a row, and when its newest source was said."""

    id: str
    said_at: datetime


@dataclass(frozen=True, slots=True)
class Reflection:
    """The result of one reflection, or the `reason` why it changed nothing.

    `tokens_before` and `tokens_after` are estimates for its inputs and their replacement; `input_tokens` and
    `output_tokens` are those of its model calls, counted by the provider.
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
