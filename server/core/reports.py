"""Reports of the API: what was forgotten, how much a pool holds, and what observing a session wrote."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Receipt:
    """How much was forgotten; `memories` includes `reflections`.

    `restored` rows had been superseded by a forgotten row, and are live again.
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
    space of `model` (None: no space is active), `unobserved_tokens` are those of messages that no observer has seen,
    `jobs` wait or run, and `failed_jobs` are not retried automatically.
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
    """What observing a session wrote; `queued`: it will run in the background.

    `merged` counts facts that were already a row, `refused` counts rejected facts by reason, and `replaced` counts
    rows that new facts superseded.
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
