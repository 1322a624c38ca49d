"""How many texts of a pool have no vector yet: each recall says it, and counting a long queue takes milliseconds."""

from datetime import datetime, timedelta

# A count up to this takes less than a millisecond, so it is made anew for each recall.
_SHORT = 1_000
# How long a larger count is used again.
_LONGEST = timedelta(seconds=2)


class PendingCounts:
    """The latest large counts of one process, by pool and by the project that a key is bound to (None: not bound)."""

    def __init__(self) -> None:
        self._large: dict[tuple[str, str | None], tuple[datetime, int]] = {}

    def recent(self, pool_id: str, project: str | None, now: datetime) -> int | None:
        """Return a large count of the last two seconds; None if the texts must be counted."""
        counted = self._large.get((pool_id, project))
        return counted[1] if counted and _is_recent(counted[0], now) else None

    def keep(self, pool_id: str, project: str | None, now: datetime, count: int) -> int:
        """Keep a count that was made now if it is large; return it."""
        self._large = {view: counted for view, counted in self._large.items() if _is_recent(counted[0], now)}
        if count > _SHORT:
            self._large[pool_id, project] = (now, count)
        return count


def _is_recent(counted_at: datetime, now: datetime) -> bool:
    return timedelta(0) <= now - counted_at < _LONGEST
