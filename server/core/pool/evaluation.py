"""What an evaluation of a pool has found: the counts and answers from which its figures are made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean
from typing import Literal

from esker.server.core.pool.known_answers import KnownAnswer
from esker.server.core.records import Kind, Tier

AGES = ("up to a week", "up to a month", "up to three months", "up to a year", "over a year")
"""The classes of age of rows."""
DEPTHS = (1, 5, 10)
FULL = "full recall"
BY_WORDS = "by words alone"
BY_MEANING = "by meaning alone"
BY_INDEX = "by meaning, with the index"
"""The ways of searching: as users get it, and one at a time."""


@dataclass(frozen=True, slots=True)
class ByMeaning:
    """Where the search by meaning alone has put an answer: exactly and, where the tier is `indexed`, by its index.

    Where it could not `search`, there is a reason.
    """

    searched: bool = False
    exact: int | None = None
    indexed: bool = False
    approximate: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class QuestionOutcome:
    """One known-answer question and what became of it. A rank is None where the answer was not among the first ten.

    `score` is that of the answer, and `milliseconds` is what the full recall took.
    """

    question: KnownAnswer
    full: int | None
    keyword: int | None
    meaning: ByMeaning
    score: float | None
    milliseconds: float


@dataclass(frozen=True, slots=True)
class MadeUp:
    """A question that nothing answers; the score and the words of what answered it all the same, or None (rightly)."""

    query: str
    score: float | None
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Ranks:
    """How well one way of searching finds the known answers: the share within the first k, and 1/rank on average."""

    asked: int
    recall: Mapping[int, float]
    mrr: float


@dataclass(frozen=True, slots=True)
class MessageCounts:
    """Of the pool's `messages` so many stand in a group, wait to be observed, or are in neither."""

    messages: int
    covered: int
    waiting: int
    lost: int


@dataclass(frozen=True, slots=True)
class PoolRowCounts:
    """How many rows a pool has.

    `live` ones are neither superseded nor expired. `expired` are past the time they are valid, and `unmarked` those of
    them that no upkeep has marked. `stale` are live ones of low priority that nobody has used for a while.
    """

    rows: int
    live: int
    superseded: int
    expired: int
    unmarked: int
    stale: int


@dataclass(frozen=True, slots=True)
class VectorTable:
    """What a pool has in the table of one space; `state` and `model` are None where the pool does not know it.

    `orphaned` vectors are of nothing that is there, `outdated` ones of words that have changed since.
    """

    space: str
    model: str | None
    state: str | None
    vectors: int
    orphaned: int
    outdated: int


@dataclass(frozen=True, slots=True)
class IndexProbe:
    """Which share of the nearest the index of a tier has found, asked with so many of the pool's own vectors."""

    tier: Tier
    questions: int
    agreement: float


@dataclass(frozen=True, slots=True)
class Repeated:
    """How many live rows were compared, and which of them say what another one says.

    `crowded` of them share their words with so many others that they were not compared with each of those.
    """

    compared: int
    ids: Sequence[str]
    crowded: int


PackFault = Literal["gone", "superseded", "expired", "elsewhere", "repeat"]
"""Why a row should not be in a pack: it is not there any more, something has replaced it, its time is over, it is of
another project, or a row before it says the same."""


@dataclass(frozen=True, slots=True)
class FreshPack:
    """What a new session of a project would be shown. `faults` name the rows that should not be there, and why."""

    project: str | None
    rows: int
    faults: Mapping[str, PackFault]
    tokens: int
    budget: int
    pins_left: int

    @property
    def precision(self) -> float:
        """Return the share of its rows that should be there."""
        return 1 - len(self.faults) / self.rows if self.rows else 1.0


@dataclass(frozen=True, slots=True)
class Missing:
    """How many texts the pool has, how many have no vector in the space of recall, and how many wait or have failed."""

    texts: int
    missing: int
    waiting: int
    failed: int


@dataclass(frozen=True, slots=True)
class Store:
    """What was counted. `missing` is None where the pool has no space yet."""

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
    """All that was found about a pool at one moment. Rows that nobody has used for `stale_days` may be stale."""

    pool: str
    moment: datetime
    seed: int
    stale_days: int
    asked: Sequence[QuestionOutcome]
    made_up: Sequence[MadeUp]
    store: Store
    packs: Sequence[FreshPack]

    @property
    def without_meaning(self) -> str | None:
        """Return why some question was not searched for by meaning; None where all were."""
        return next((one.meaning.reason for one in self.asked if not one.meaning.searched), None)

    def ranks_by_way(self) -> dict[str, Ranks]:
        """Return how well each way of searching finds the known answers, as far as it was tried."""
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
    """Return the figures of some ranks, one for each question."""
    asked = len(found)
    within = {depth: sum(rank is not None and rank <= depth for rank in found) for depth in DEPTHS}
    return Ranks(
        asked,
        {depth: count / asked if asked else 0.0 for depth, count in within.items()},
        fmean(1 / rank if rank else 0.0 for rank in found) if asked else 0.0,
    )
