"""The answer to a recall: its hits, their scores and what was left out."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from esker.server.core.records import Category, Kind, Priority, Source, Tier, Trust
from esker.server.core.similar_projects import UnknownProject


@dataclass(frozen=True, slots=True)
class ScoreParts:
    """Why a hit has its rank. A rank of one search is None if that search did not find the text.

    `keyword` is its share of the highest possible score for the query's rarest words, `cosine` its similarity,
    `around` the evidence that its neighbours add, and `time` how well it fits the time in the query (0 to 1).
    `relevance` combines them, as a multiple of the floor; `prior` only breaks ties. `rerank` is the reranker's score
    on that model's own scale; None without one. `named`: it contains an identifier of the query that few others have.
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

    `same` are the ids of other rows that say the same, and `sources` those of all these rows. `passages` are the ids of
    passages that it covers. `truncated`: the content was cut to fit; the memory itself is whole. A passage has no kind,
    priority or category. `contradicted_by` is the id of a newer hit that says otherwise; both may hold.
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
    contradicted_by: str | None = None


@dataclass(frozen=True, slots=True)
class AskedWindow:
    """The time that a query mentions, from its first to its last second."""

    start: datetime
    end: datetime


LeftOutReason = Literal[
    "below the floor", "far below the best", "says the same", "covered", "outdated", "seen", "limit", "tokens"
]


ModelStepOutcome = Literal["off", "ok", "late", "failed"]
"""The outcome of an optional model call; `off`: it is switched off, or there was nothing to do."""


@dataclass(frozen=True, slots=True)
class LeftOutCandidate:
    """A candidate that is not a hit, and the reason; `by` is the id of the hit that represents it, if there is one."""

    id: str
    reason: LeftOutReason
    by: str | None
    parts: ScoreParts


@dataclass(frozen=True, slots=True)
class Recalled:
    """The answer to a recall.

    `semantic` is the state of vector search (`off`: not requested; `weak`: the model hardly tells texts in the
    question's script apart) and `reason` explains `weak` and `degraded`. `abstained`: no candidate reached the floor.
    `omitted` counts relevant candidates that exceed the limit or the tokens. `pending` counts texts without a vector,
    and `unobserved_tokens` those of messages that no observer has seen. Texts from the `window`, the time in the query,
    rank higher. `reranked` and `paraphrased` are the outcomes of the optional models; `paraphrases` were searched for
    as well. `left_out` explains, on request, why candidates are not hits. `unknown_project` is the requested project if
    nothing belongs to it; the hits then belong to no project. `seen` counts hits that the caller has already.
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
