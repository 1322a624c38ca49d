"""How many texts have a common word: a search weighs words by it, and counting the common ones takes a third of it."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from esker.server.core.records import Tier

# A lower count takes less than a tenth of a millisecond, so it is made anew for each search.
_COMMON = 1_000
# How long a count is used, and by how many parts the tier may have grown or shrunk meanwhile, as a share of the count.
_LONGEST = timedelta(minutes=5)
_MOST_CHANGE = 0.01
# Words of all pools that are remembered: some 10 MB.
_MOST = 50_000

_Key = tuple[str, str | None, Tier, str]


@dataclass(frozen=True, slots=True)
class _Count:
    """The `parts` of a tier that have a word, and all of them (`in_tier`) at that moment."""

    parts: float
    in_tier: int
    made_at: datetime


class TermCounts:
    """The latest counts of common words in one process, by pool and by the project that a key is bound to (None: not
    bound). The least recently used ones are dropped.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[_Key, _Count] = OrderedDict()

    def in_pool(self, pool_id: str, project: str | None, now: datetime) -> "PoolTermCounts":
        """Return the counts of one pool, as a key sees them at this moment."""
        return PoolTermCounts(self._kept, pool_id, project, now)


@dataclass(frozen=True, slots=True)
class PoolTermCounts:
    """The counts of common words in one pool at one moment, in a tier of `in_tier` parts."""

    kept: OrderedDict[_Key, _Count]
    pool_id: str
    project: str | None
    now: datetime

    def known(self, tier: Tier, in_tier: int, terms: Sequence[str]) -> dict[str, float]:
        """Return the counts that need not be made again: at most five minutes old and one percent wrong."""
        found: dict[str, float] = {}
        for term in terms:
            key = (self.pool_id, self.project, tier, term)
            count = self.kept.get(key)
            if count and self._is_good(count, in_tier):
                self.kept.move_to_end(key)
                found[term] = count.parts
        return found

    def keep(self, tier: Tier, in_tier: int, counts: Mapping[str, float]) -> None:
        """Keep the large ones of counts that were made now."""
        for term, parts in counts.items():
            if parts >= _COMMON:
                self.kept[self.pool_id, self.project, tier, term] = _Count(parts, in_tier, self.now)
        while len(self.kept) > _MOST:
            self.kept.popitem(last=False)

    def _is_good(self, count: _Count, in_tier: int) -> bool:
        is_recent = timedelta(0) <= self.now - count.made_at < _LONGEST
        return is_recent and abs(in_tier - count.in_tier) <= _MOST_CHANGE * count.parts
