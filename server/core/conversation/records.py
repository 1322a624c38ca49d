"""The records of a conversation: sessions, messages and the observation groups that cover them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from esker.server.core.json_input import Json
from esker.server.core.records import Trust

Role = Literal["user", "assistant", "system", "tool"]
KeptBy = Literal["client", "gateway"]

ROLES: tuple[Role, ...] = get_args(Role)

KNOWN_CLIENTS = frozenset(("claude-code", "codex", "copilot", "cursor", "gemini-cli", "opencode", "pi", "api"))
"""The clients whose names Esker gives; other programs name themselves as they like."""

IdScope = Literal["session", "client"]
"""Where the id of a message is unique: in its session, or in all sessions of its client, which shows copies in
forks."""

Block = dict[str, Json]
"""One content block of the Messages API."""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """One conversation of one client. Token counts are estimates, see `server/core/text/tokens.py`.

    `begun_at` is the time of its earliest message or, if that is earlier, when it was opened (`created_at`);
    `last_sent_at` that of its latest message. `kept_by` names the sender of its messages.
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
    kept_by: KeptBy


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One transcript entry. `tokens` is the cost of the whole entry for a model.

    `text` is the part that is searched, and in a slice the part that an observer reads; `shown_tokens` is the cost of
    what an observer reads and the images.
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
    """A message from a client: cleaned and redacted, without a number in its session yet."""

    external_id: str
    role: Role
    content: list[Block]
    sent_at: datetime


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The outcome of a batch. `conflicts` are duplicates whose content differs from the stored message.

    `forgotten` counts accepted messages that were stored without their words, since those repeat something forgotten.
    """

    accepted: int
    duplicates: int
    unobserved_tokens: int
    conflicts: list[str]
    forgotten: int = 0


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
class Passage:
    """A window of a session's messages, word for word. `trust` is the lowest of its messages."""

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
