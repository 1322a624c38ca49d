"""The order of a pack, and what breaks ties."""

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from server.core.records import Kind, Memory, Priority

HALF_LIFE = timedelta(days=7)
PRIORITY_WEIGHT: Mapping[Priority, float] = {"high": 3.0, "medium": 2.0, "low": 1.0}
KIND_BIAS: Mapping[Kind, float] = {"note": 1.5, "reflection": 1.3, "observation": 1.0}
"""`manual` has no bias: those rows are pinned, not ranked."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def pack_score(kind: Kind, priority: Priority, last_used_at: datetime) -> float:
    """Return ln(priority weight) + ln(kind bias) + ln 2 · last use / half-life, with times counted from 1970.

    The difference of two scores is what counts: a row that was last used one half-life later is worth twice as much.
    """
    age = (last_used_at - _EPOCH) / HALF_LIFE
    return math.log(PRIORITY_WEIGHT[priority]) + math.log(KIND_BIAS[kind]) + math.log(2) * age


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
