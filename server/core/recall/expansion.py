"""The evidence for a memory or a passage: the rows that it was drawn from, and the messages around its sources."""

from dataclasses import dataclass
from datetime import datetime

from esker.server.core.conversation.records import Role
from esker.server.core.records import SourcedMemory, Trust

FORGOTTEN = "[forgotten]"
"""Replaces the words of a forgotten message."""


@dataclass(frozen=True, slots=True)
class ExpandedMemory:
    """A row of an expansion. `truncated`: its content was cut to fit; the memory itself is whole.

    `depth` is 0 for the requested row, 1 for rows that it was drawn from, and so on; `source_of` is the id of the row
    that was drawn from this one, None at depth 0.
    """

    memory: SourcedMemory
    age: str
    depth: int
    source_of: str | None
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class ExpandedPassage:
    """A passage that is expanded; its messages have its words."""

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
    """A message of an expansion: `text` is its observer text, `cited`: a row of the expansion has it as a source.

    The words of a `forgotten` message are gone; `truncated`: the text was cut.
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
    """Messages of one session, in order; messages between them may be left out, as a gap in their seqs shows."""

    session_id: str
    client: str
    external_id: str
    project: str | None
    timezone: str
    messages: list[HeardMessage]


@dataclass(frozen=True, slots=True)
class OmittedCounts:
    """How many rows, cited messages and neighbouring messages exist but are not shown."""

    memories: int = 0
    cited: int = 0
    around: int = 0


@dataclass(frozen=True, slots=True)
class Expansion:
    """A memory or a passage with its evidence.

    `drawn_from` are its sources and their sources, nearest first, each once; `excerpts` are the messages in which any
    of them was said. A note has none: its `author` wrote it at `created_at`. The cited messages of a passage are its
    own.
    """

    expanded: ExpandedMemory | ExpandedPassage
    drawn_from: list[ExpandedMemory]
    excerpts: list[Excerpt]
    left_out: OmittedCounts
