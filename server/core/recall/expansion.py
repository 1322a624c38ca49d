"""What stands behind a memory or a passage: the rows that it was drawn from, and the messages around what was said."""

from dataclasses import dataclass
from datetime import datetime

from esker.server.core.conversation.records import Role
from esker.server.core.records import SourcedMemory, Trust

FORGOTTEN = "[forgotten]"
"""Stands for the words of a message that were forgotten."""


@dataclass(frozen=True, slots=True)
class ExpandedMemory:
    """A row on the way to its messages. `truncated` says that its content was cut to fit; the row holds it whole.

    `depth` is 0 for the row that was asked for, 1 for what it was drawn from, and so on; `source_of` is the row that
    was drawn from it, None for the first.
    """

    memory: SourcedMemory
    age: str
    depth: int
    source_of: str | None
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class ExpandedPassage:
    """A passage on the way to its messages, which are its words."""

    id: str
    session_id: str
    project: str | None
    first_seq: int
    last_seq: int
    trust: Trust
    said_at: datetime
    age: str


@dataclass(frozen=True, slots=True)
class HeardMessage:
    """A message as it is shown: `text` is what an observer reads of it, `cited` says that a row names it as a source.

    The words of a `forgotten` message are gone; `truncated` says that the text was cut.
    """

    seq: int
    external_id: str
    role: Role
    trust: Trust
    sent_at: datetime
    age: str
    text: str
    cited: bool
    forgotten: bool
    truncated: bool


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Messages of one session, in order; a gap between their seqs is a gap in what is shown."""

    session_id: str
    client: str
    external_id: str
    project: str | None
    timezone: str
    messages: list[HeardMessage]


@dataclass(frozen=True, slots=True)
class OmittedCounts:
    """What there is and is not shown: rows, messages that are cited, and messages around those that are shown."""

    memories: int = 0
    cited: int = 0
    around: int = 0


@dataclass(frozen=True, slots=True)
class Expansion:
    """A memory or a passage with what stands behind it.

    `drawn_from` are the rows that it stands for and those that they stand for, nearest first, each once; `excerpts`
    are the messages in which any of them was said. A note has none: its `author` wrote it down at `created_at`. Of a
    passage its own messages are those that are cited.
    """

    expanded: ExpandedMemory | ExpandedPassage
    drawn_from: list[ExpandedMemory]
    excerpts: list[Excerpt]
    left_out: OmittedCounts
