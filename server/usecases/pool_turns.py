"""Turns between pools: a pool with many jobs does not keep those of others waiting."""

from collections import Counter
from collections.abc import Sequence


class PoolTurns:
    """How many jobs this server runs, by pool, and which pools had their turn last."""

    def __init__(self) -> None:
        self._running: Counter[str] = Counter()
        self._turns: dict[str, int] = {}
        self._count = 0

    def order(self, waiting: Sequence[str]) -> list[str]:
        """Return the pools in the order of their turns; `waiting` has the one that has waited longest first.

        A pool of which fewer jobs run goes first, then one whose turn is longer ago.
        """
        self._turns = {pool_id: turn for pool_id, turn in self._turns.items() if pool_id in waiting}
        return sorted(waiting, key=lambda pool_id: (self._running[pool_id], self._turns.get(pool_id, 0)))

    def begin(self, pool_id: str) -> None:
        """Note that a job of a pool begins."""
        self._running[pool_id] += 1
        self._count += 1
        self._turns[pool_id] = self._count

    def end(self, pool_id: str) -> None:
        """Note that a job of a pool has ended."""
        self._running[pool_id] -= 1
        if not self._running[pool_id]:
            del self._running[pool_id]
