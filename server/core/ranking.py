"""The order of a pack, and the fusion of recall's two searches."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from server.core.records import Kind, Memory, Priority

HALF_LIFE = timedelta(days=7)
PRIORITY_WEIGHT: Mapping[Priority, float] = {"high": 3.0, "medium": 2.0, "low": 1.0}
KIND_BIAS: Mapping[Kind, float] = {"note": 1.5, "reflection": 1.3, "observation": 1.0}
"""`manual` has no bias: those rows are pinned, not ranked."""

RRF_K = 60
# One place in one search is worth at least 1/110 - 1/111 = 0.00008 among 50 candidates; priors stay below that.
_PRIOR = 0.00007
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def pack_score(kind: Kind, priority: Priority, last_used_at: datetime) -> float:
    """Return ln(priority weight) + ln(kind bias) + ln 2 · last use / half-life, with times counted from 1970.

    The difference of two scores is what counts: a row that was last used one half-life later is worth twice as much.
    """
    age = (last_used_at - _EPOCH) / HALF_LIFE
    return math.log(PRIORITY_WEIGHT[priority]) + math.log(KIND_BIAS[kind]) + math.log(2) * age


@dataclass(frozen=True, slots=True)
class Fused:
    """A candidate's place after fusion. Ranks start at 1; None means that the search did not find it."""

    id: str
    score: float
    keyword_rank: int | None
    vector_rank: int | None


def fuse(keyword: Sequence[str], vector: Sequence[str], prior: Mapping[str, float]) -> list[Fused]:
    """Fuse two rankings by reciprocal rank: score = Σ 1/(60 + rank), as a share of the best score possible.

    `prior` (0 to 1 by id) only breaks ties. With one search empty, the best possible is the other's first place,
    so that 1.0 always means "first wherever it could be". Source: Cormack, Clarke, Büttcher, SIGIR 2009.
    """
    by_keyword = {item: rank for rank, item in enumerate(keyword, start=1)}
    by_vector = {item: rank for rank, item in enumerate(vector, start=1)}
    best = sum(1 / (RRF_K + 1) for ranking in (keyword, vector) if ranking) + _PRIOR
    fused = [
        Fused(
            item,
            (_reciprocal(by_keyword.get(item)) + _reciprocal(by_vector.get(item)) + _PRIOR * prior[item]) / best,
            by_keyword.get(item),
            by_vector.get(item),
        )
        for item in by_keyword | by_vector
    ]
    return sorted(fused, key=lambda candidate: (-candidate.score, candidate.id))


def _reciprocal(rank: int | None) -> float:
    return 0.0 if rank is None else 1 / (RRF_K + rank)


def prior(kind: Kind, priority: Priority) -> float:
    """Return a tie-breaker from 0 to 1 that grows with the priority first, then with the kind's bias."""
    return PRIORITY_WEIGHT[priority] / 3 * 0.9 + KIND_BIAS.get(kind, 1.5) / 1.5 * 0.1


def distinct(rows: Iterable[Memory]) -> list[str]:
    """Return the ids of rows in order, one for each wording (case and space aside); a live row stands for others."""
    seen: dict[str, Memory] = {}
    for row in rows:
        words = wording(row)
        if words not in seen or (seen[words].superseded_at and not row.superseded_at):
            seen[words] = row
    return [row.id for row in seen.values()]


def wording(row: Memory) -> str:
    """Return the words of a row, case and space aside."""
    return " ".join(row.content.casefold().split())
