"""The findings of a pool's evaluation: the counts and answers from which its figures are made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean
from typing import Literal

from esker.server.core.pool.known_answers import KnownAnswer
from esker.server.core.pool.row_worth import Worthless
from esker.server.core.records import Kind, Tier

AGES = ("up to a week", "up to a month", "up to three months", "up to a year", "over a year")
"""The age classes of rows."""
DEPTHS = (1, 5, 10)
FULL = "full recall"
BY_WORDS = "by words alone"
BY_MEANING = "by meaning alone"
BY_INDEX = "by meaning, with the index"
"""The ways of searching: full recall, and its parts one at a time."""


@dataclass(frozen=True, slots=True)
class ByMeaning:
    """The ranks of an answer in a search by meaning alone: exact and, if the tier is `indexed`, by its index.

    A question that could not be `searched` has a reason.
    """

    searched: bool = False
    exact: int | None = None
    indexed: bool = False
    approximate: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class QuestionOutcome:
    """One known-answer question and the ranks of its answer, None if not among the first ten.

    `score` is that of the answer; `milliseconds` is the duration of full recall.
    """

    question: KnownAnswer
    full: int | None
    keyword: int | None
    meaning: ByMeaning
    score: float | None
    milliseconds: float


@dataclass(frozen=True, slots=True)
class MadeUpQuestion:
    """A question without an answer; the score and text of the false answer, if it got one."""

    query: str
    score: float | None
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Ranks:
    """How well one way of searching finds the known answers: the share within the first k, and the mean of 1/rank."""

    asked: int
    recall: Mapping[int, float]
    mrr: float


@dataclass(frozen=True, slots=True)
class MessageCounts:
    """How many of the pool's messages are covered by a group, wait to be observed, or neither (lost)."""

    messages: int
    covered: int
    waiting: int
    lost: int


@dataclass(frozen=True, slots=True)
class PoolRowCounts:
    """How many rows a pool has.

    `live` rows are neither superseded nor expired. `expired` rows are no longer valid, and `unmarked` are those that
    no upkeep has marked. `stale` rows are live, of low priority, and have not been used for a while.
    """

    rows: int
    live: int
    superseded: int
    expired: int
    unmarked: int
    stale: int


@dataclass(frozen=True, slots=True)
class VectorTable:
    """A pool's vectors in the table of one space; `state` and `model` are None if the pool does not know the space.

    `orphaned` vectors belong to deleted texts, `outdated` ones to texts that have changed since.
    """

    space: str
    model: str | None
    state: str | None
    vectors: int
    orphaned: int
    outdated: int


@dataclass(frozen=True, slots=True)
class IndexProbe:
    """The share of the nearest texts that the index of a tier finds, over `questions` of the pool's own vectors."""

    tier: Tier
    questions: int
    agreement: float


@dataclass(frozen=True, slots=True)
class Repeated:
    """How many live rows were compared, and the ids of those that repeat another one.

    `crowded` rows share words with too many others to be compared with each.
    """

    compared: int
    ids: Sequence[str]
    crowded: int


PackFault = Literal["gone", "superseded", "expired", "elsewhere", "repeat"]
"""Why a row should not be in a pack: it was deleted, superseded, has expired, belongs to another project, or repeats
an earlier row."""


@dataclass(frozen=True, slots=True)
class PackWorth:
    """The tokens of a pack's rows, the rows that are not worth theirs, and the tokens of those by reason."""

    tokens: int = 0
    worthless: Mapping[str, Worthless] = field(default_factory=dict[str, Worthless])
    wasted: Mapping[Worthless, int] = field(default_factory=dict[Worthless, int])

    @property
    def useful(self) -> float:
        """Return the share of the tokens that are in rows worth them."""
        return 1 - sum(self.wasted.values()) / self.tokens if self.tokens else 1.0


@dataclass(frozen=True, slots=True)
class FreshPack:
    """The pack that a new session of a project would get. `faults` are the rows that should not be in it, and why."""

    project: str | None
    rows: int
    faults: Mapping[str, PackFault]
    tokens: int
    budget: int
    pins_left: int
    worth: PackWorth = PackWorth()

    @property
    def precision(self) -> float:
        """Return the share of its rows that should be in it."""
        return 1 - len(self.faults) / self.rows if self.rows else 1.0


@dataclass(frozen=True, slots=True)
class Missing:
    """How many texts the pool has, how many have no vector in recall's space, and how many of those wait or failed."""

    texts: int
    missing: int
    waiting: int
    failed: int


@dataclass(frozen=True, slots=True)
class StoreCounts:
    """The counts. `missing` is None if the pool has no space yet."""

    messages: MessageCounts
    rows: PoolRowCounts
    by_age: Mapping[Kind, Mapping[int, int]]
    orphaned_rows: Sequence[str]
    vectors: Sequence[VectorTable]
    missing: Missing | None
    indexes: Sequence[IndexProbe]
    repeated: Repeated


@dataclass(frozen=True, slots=True)
class PoolEvaluation:
    """All findings about a pool at one moment. Rows not used for `stale_days` may be stale."""

    pool: str
    moment: datetime
    seed: int
    stale_days: int
    asked: Sequence[QuestionOutcome]
    made_up: Sequence[MadeUpQuestion]
    store: StoreCounts
    packs: Sequence[FreshPack]

    @property
    def without_meaning(self) -> str | None:
        """Return why a question was not searched by meaning; None if all were."""
        return next((one.meaning.reason for one in self.asked if not one.meaning.searched), None)

    def ranks_by_way(self) -> dict[str, Ranks]:
        """Return how well each way of searching finds the known answers; ways that were not tried are missing."""
        searched = [one.meaning for one in self.asked if one.meaning.searched]
        found = {
            FULL: [one.full for one in self.asked],
            BY_WORDS: [one.keyword for one in self.asked],
            BY_MEANING: [one.exact for one in searched],
            BY_INDEX: [one.approximate for one in searched if one.indexed],
        }
        return {way: ranks(some) for way, some in found.items() if some}

    @property
    def false_answers(self) -> float:
        """Return the share of made-up questions that were answered."""
        return fmean(one.score is not None for one in self.made_up) if self.made_up else 0.0


def ranks(found: Sequence[int | None]) -> Ranks:
    """Return the figures of ranks, one for each question."""
    asked = len(found)
    within = {depth: sum(rank is not None and rank <= depth for rank in found) for depth in DEPTHS}
    return Ranks(
        asked,
        {depth: count / asked if asked else 0.0 for depth, count in within.items()},
        fmean(1 / rank if rank else 0.0 for rank in found) if asked else 0.0,
    )
