"""The records between an observer or a reflector and the rows that they make."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from esker.server.core.conversation.records import Message, Session
from esker.server.core.records import Category, Facet, Memory, Priority, ReflectionScope, TokenUse, Trust


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
    """What an observer is shown: consecutive messages, what the session already keeps, and what its agent was shown.

    `previous` are the session's own latest rows, `known` the rows that came to the agent in a pack or by a recall, and
    `related` those of its project that are about what is said here.
    """

    session: Session
    messages: tuple[Message, ...]
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
