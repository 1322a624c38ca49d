"""What a recall answers."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from esker.server.core.projects import UnknownProject
from esker.server.core.records import Category, Kind, Priority, Source, Tier, Trust


@dataclass(frozen=True, slots=True)
class ScoreParts:
    """Why a hit stands where it stands. A rank is None where that search did not find the row.

    `keyword` is its share of what the query's most telling words could give at most, `cosine` how near it is, `around`
    what its neighbours add, and `time` how well it fits the time that the query speaks of. `relevance` is all of it, as
    a multiple of what is enough; `prior` only breaks ties. `rerank` is what a reranker says of it, on a scale of that
    model's own; None where none was asked. `named` says that it holds an identifier of the query that few others do.
    """

    keyword_rank: int | None
    vector_rank: int | None
    keyword: float
    cosine: float | None
    around: float
    time: float
    relevance: float
    prior: float
    rerank: float | None = None
    named: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory or a passage that answers the query. `score` is from 0 to 1 and falls from hit to hit.

    `sources` are those of all rows that say it: this one and `same`, the ids of others that do. `passages` hold the
    words that it was taken from. `truncated` says that the content was cut to fit; the memory holds it whole. A
    passage has no kind, priority or category.
    """

    id: str
    tier: Tier
    content: str
    kind: Kind | None
    priority: Priority | None
    category: Category | None
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
    passages: list[str]
    superseded_by: str | None
    truncated: bool
    parts: ScoreParts | None


@dataclass(frozen=True, slots=True)
class AskedWindow:
    """The time that a query speaks of, from its first to its last second."""

    start: datetime
    end: datetime


LeftOutReason = Literal[
    "below the floor", "far below the best", "says the same", "covered", "outdated", "seen", "limit", "tokens"
]


ModelStepOutcome = Literal["off", "ok", "late", "failed"]
"""The outcome of an optional model call; `off`: it is switched off, or there was nothing to do."""


@dataclass(frozen=True, slots=True)
class LeftOutCandidate:
    """A candidate that is no hit, and why; where another one stands for it, `by` is its id."""

    id: str
    reason: LeftOutReason
    by: str | None
    parts: ScoreParts


@dataclass(frozen=True, slots=True)
class Recalled:
    """The answer to a recall.

    `semantic` says whether the search by meaning took part (`off`: it was not asked for; `weak`: it did, but the model
    hardly tells texts in the question's script apart), `reason` why not, or not much. `abstained`
    says that nothing was relevant. `omitted` more hits were relevant and are not shown, for the limit or for the
    tokens. `pending` texts cannot be found by meaning yet, and `unobserved_tokens` of messages are in no row yet.
    What was said in the `window` that the query speaks of, or is about it, goes before the rest. `reranked` says
    whether a reranker put the hits in order, and `paraphrased` whether a language model was asked for `paraphrases`,
    which were searched for as well. `left_out` explains, if asked, which candidates are no hits. Where nothing belongs
    to the project that was named, it is the `unknown_project`, and the hits belong to none. `seen` hits are left out,
    as the caller has them already, or what says the same.
    """

    hits: list[Hit]
    semantic: Literal["ok", "weak", "degraded", "off"]
    reason: str | None
    abstained: bool
    omitted: int
    pending: int
    unobserved_tokens: int
    window: AskedWindow | None = None
    reranked: ModelStepOutcome = "off"
    paraphrased: ModelStepOutcome = "off"
    paraphrases: list[str] = field(default_factory=list[str])
    left_out: list[LeftOutCandidate] = field(default_factory=list[LeftOutCandidate])
    unknown_project: UnknownProject | None = None
    seen: int = 0
