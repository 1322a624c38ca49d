"""Transcript entries in the Python client: as they are sent, and as the server has stored them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from esker.server.core.conversation.records import Role
from esker.server.core.json_input import Json
from esker.server.core.records import Trust


@dataclass(frozen=True, slots=True)
class Message:
    """One transcript entry. `external_id` is the client's own id for it; sending it again changes nothing.

    `content` is a string or a list of blocks as in the Messages API; `sent_at` defaults to now.
    """

    external_id: str
    role: Role
    content: Json
    sent_at: datetime | None = None

    @property
    def body(self) -> dict[str, Any]:
        """The entry as the server takes it."""
        body: dict[str, Any] = {"external_id": self.external_id, "role": self.role, "content": self.content}
        return body | ({"sent_at": self.sent_at.isoformat()} if self.sent_at else {})


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A stored transcript entry; `seq` is its number in the session, and `text` is what an observer reads of it."""

    seq: int
    external_id: str
    role: Role
    trust: Trust
    sent_at: datetime
    content: list[dict[str, Any]]
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A window of a session's messages, verbatim; `trust` is the lowest of theirs."""

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


@dataclass(frozen=True, slots=True)
class HistoryItem:
    """An item of a framework, with the message that stands for it in memory: its role and its blocks."""

    role: Role
    blocks: list[dict[str, Any]]
    item: dict[str, Any]
