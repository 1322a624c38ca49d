"""What a recall answers."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from server.core.records import Category, Kind, Priority, Source, Trust


@dataclass(frozen=True, slots=True)
class ScoreParts:
    """Why a hit stands where it stands. A rank is None where that search did not find the row."""

    keyword_rank: int | None
    vector_rank: int | None
    coverage: float
    cosine: float | None
    prior: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that answers the query. `score` is from 0 to 1 and falls from hit to hit.

    `sources` are those of all rows that say it: this one and `same`, the ids of others that do. `truncated` says that
    the content was cut to fit; the memory holds it whole.
    """

    id: str
    content: str
    kind: Kind
    priority: Priority
    category: Category
    trust: Trust
    score: float
    said_at: datetime
    age: str
    valid_until: datetime | None
    project: str | None
    session_id: str | None
    tags: list[str]
    tentative: bool
    sources: list[Source]
    same: list[str]
    superseded_by: str | None
    truncated: bool
    parts: ScoreParts | None


@dataclass(frozen=True, slots=True)
class Recalled:
    """The answer to a recall.

    `semantic` says whether the search by meaning took part (`off`: it was not asked for), `reason` why not. `abstained`
    says that nothing was relevant. `omitted` more hits were relevant and are not shown, for the limit or for the
    tokens. `pending` rows cannot be found by meaning yet, and `unobserved_tokens` of messages are in no row yet.
    """

    hits: list[Hit]
    semantic: Literal["ok", "degraded", "off"]
    reason: str | None
    abstained: bool
    omitted: int
    pending: int
    unobserved_tokens: int
