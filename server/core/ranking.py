"""The order of a pack, and what breaks ties."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import product

from esker.server.core.records import Kind, Priority

HALF_LIFE = timedelta(days=7)
PRIORITY_WEIGHT: Mapping[Priority, float] = {"high": 3.0, "medium": 2.0, "low": 1.0}
KIND_BIAS: Mapping[Kind, float] = {"note": 1.5, "reflection": 1.3, "observation": 1.0}
"""`manual` has no bias: those rows are pinned, not ranked."""
BONUS: Mapping[tuple[Kind, Priority], float] = {
    (kind, priority): math.log(PRIORITY_WEIGHT[priority]) + math.log(KIND_BIAS[kind])
    for kind, priority in product(KIND_BIAS, PRIORITY_WEIGHT)
}
"""The constant part of a row's score, by kind and priority."""
_LN_2 = math.log(2)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def pack_score(kind: Kind, priority: Priority, last_used_at: datetime) -> float:
    """Return ln(priority weight) + ln(kind bias) + ln 2 · last use / half-life, with times counted from 1970.

    Only differences of scores matter: a row that was last used one half-life later is worth twice as much.
    """
    return BONUS[kind, priority] + _LN_2 * ((last_used_at - _EPOCH) / HALF_LIFE)


def last_use(kind: Kind, priority: Priority, score: float) -> datetime:
    """Return the last use at which a row of this kind and priority has the given `pack_score`."""
    return _EPOCH + (score - BONUS[kind, priority]) / _LN_2 * HALF_LIFE


def prior(kind: Kind, priority: Priority) -> float:
    """Return a tie-breaker, 0 to 1: higher for a higher priority, then for a kind with a higher bias."""
    return PRIORITY_WEIGHT[priority] / 3 * 0.9 + KIND_BIAS.get(kind, 1.5) / 1.5 * 0.1
