"""What a pool is reported to hold, what became of it, and what observing a session wrote."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Receipt:
    """What went, `reflections` among the `memories`.

    `restored` rows had been replaced by what is gone, and are live again.
    """

    id: str
    memories: int
    reflections: int
    restored: int
    vectors: int
    packs: int
    messages: int


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """How much a pool holds and how ready it is.

    `memories` are live rows by kind, `superseded` those that were replaced. `pending` texts have no vector yet in the
    space of `model` (None: none is in use), `unobserved_tokens` of messages are in no row yet, `jobs` wait or run, and
    `failed_jobs` are not tried again by themselves.
    """

    pool: str
    memories: dict[str, int]
    superseded: int
    passages: int
    sessions: int
    messages: int
    unobserved_tokens: int
    pending: int
    jobs: int
    failed_jobs: int
    last_message_at: datetime | None
    last_memory_at: datetime | None
    model: str | None
    embedder: str
    observer: str
    reflector: str


@dataclass(frozen=True, slots=True)
class ObserveReport:
    """What observing a session wrote; `queued` says that it will happen in the background.

    Of the other facts that were found, `merged` were said before, and `refused` cannot be kept, by reason; `replaced`
    rows were superseded.
    """

    groups: int
    memories: int
    merged: int
    replaced: int
    refused: dict[str, int]
    observer: str
    queued: bool
    group_ids: list[str]
    memory_ids: list[str]
