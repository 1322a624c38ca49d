"""Requests to forget, the plans that show what would go, and the receipts of what went."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from esker.server.core.conversation.records import Role
from esker.server.core.records import Kind

RowReason = Literal["asked", "source", "same", "drawn", "echo"]
"""Why a memory goes: it was asked for, is a source of one of those, says the same, was drawn from one, or only repeats
one."""
ROW_REASONS: Mapping[RowReason, str] = {
    "asked": "",
    "source": "is a source of it",
    "same": "says the same",
    "drawn": "was drawn from it",
    "echo": "repeats it",
}
"""The reasons in words that follow a memory; "" for one that was asked for."""
MessageReason = Literal["said", "echo"]
"""Why a message is affected: it said what is forgotten, or only repeats it."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The texts to forget: `ids` alone, or those that say one of `words` within the other limits, or all within them.

    `source` is a trust (`user`, `assistant`, `tool`, `external`) or the author of memories; times are those at which
    something was said.
    """

    ids: Sequence[str] = ()
    words: Sequence[str] = ()
    session_id: str | None = None
    project: str | None = None
    client: str | None = None
    source: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def limits(self) -> dict[str, object]:
        """The limits beside ids and words, by name."""
        names = ("session_id", "project", "client", "source", "since", "until")
        return {name: getattr(self, name) for name in names}

    @property
    def is_limited(self) -> bool:
        """Whether any of the limits is set."""
        return any(limit is not None for limit in self.limits.values())


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """A request. `echoes` includes texts that only repeat it; `messages` also blanks messages (None: unless ids are
    given)."""

    selection: Selection
    messages: bool | None = None
    echoes: bool = True

    @property
    def with_messages(self) -> bool:
        """Whether messages are blanked."""
        return not self.selection.ids if self.messages is None else self.messages


@dataclass(frozen=True, slots=True)
class DoomedRow:
    """A memory that would be deleted, and why."""

    id: str
    kind: Kind
    content: str
    why: RowReason


@dataclass(frozen=True, slots=True)
class DoomedMessage:
    """A message that would be `blanked`, or else only be taken out of passages, and why; `text` is its beginning."""

    session_id: str
    seq: int
    role: Role
    text: str
    why: MessageReason
    blanked: bool


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """All that would be forgotten; nothing was changed. `names` are the words that tell it from everything else.

    `notes` are tasks, continuations and titles of sessions that would be deleted; `rewritten` are memories that would
    lose a quotation. `renamed` are the projects, directories, clients and ids of clients that would get another name.
    """

    names: list[str]
    memories: list[DoomedRow]
    messages: list[DoomedMessage]
    notes: list[str]
    rewritten: list[str]
    renamed: list[str]

    @property
    def digest(self) -> str:
        """A hash of the plan, to check that it is still the one that a person was shown."""
        messages = [(one.session_id, one.seq, one.blanked) for one in self.messages]
        told = [[row.id for row in self.memories], messages, self.notes, self.rewritten, self.renamed]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Receipt:
    """How much was forgotten; `memories` includes `reflections`.

    `restored` rows had been superseded by a forgotten row, and are live again. `notes` are tasks, continuations and
    titles of sessions. `renamed` counts the projects, directories, clients and ids of clients that have other names
    now. `left` counts the texts that still say it, by place, such as `messages (content)`: all texts of
    the pool were searched.
    """

    id: str
    memories: int
    reflections: int
    restored: int
    vectors: int
    packs: int
    messages: int
    notes: int
    renamed: int
    left: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Proof:
    """A search of every text of a pool for what a receipt forgot, by its keyed hashes, which contain no words.

    `left` counts the `texts` of the searched `columns` that still say it, by place.
    """

    id: str
    columns: int
    texts: int
    left: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Limits within which nothing is in recall or packs until it is lifted; see `Selection` for what they mean."""

    id: str
    session_id: str | None
    project: str | None
    client: str | None
    source: str | None
    since: datetime | None
    until: datetime | None
    created_at: datetime
    lifted_at: datetime | None


@dataclass(frozen=True, slots=True)
class Quarantined:
    """How much a quarantine took out of recall and packs, or how much came back when it was lifted.

    `memories` counts those within its limits and all that were drawn from them. `revived` counts memories that one of
    these had superseded: they are live as long as the quarantine lasts.
    """

    id: str
    memories: int
    revived: int
    passages: int
    sessions: int
    packs: int
