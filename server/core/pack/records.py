"""The records of a context pack."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from esker.server.core.records import Category, Kind, Priority, Trust

PackReason = Literal["initial", "reflection", "evicted", "forgotten"]


class PackRow(NamedTuple):
    """The fields of a memory that a pack needs. A tuple: a dataclass takes three times as long."""

    id: str
    kind: Kind
    priority: Priority
    category: Category
    content: str
    group_id: str | None
    project: str | None
    tokens: int
    said_at: datetime
    last_used_at: datetime
    tentative: bool
    trust: Trust


@dataclass(frozen=True, slots=True)
class Pack:
    """The frozen text that goes before a session's messages. `pins_left` pinned rows did not fit.

    Versions count from 1; 0 is a pack that is not stored yet.
    """

    text: str
    sha256: str
    tokens: int
    memory_ids: list[str]
    pins_left: int
    reason: PackReason
    created_at: datetime
    version: int = 0
