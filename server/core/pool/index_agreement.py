"""How well an approximate search agrees with an exact one."""

from collections.abc import Sequence

NEAREST = 10
"""Of how many nearest it is asked whether they were found."""
LEAST = 0.98
"""The agreement below which something is wrong with an index."""
# Scores come from half precision; what differs by less is equally near.
_EQUAL = 1e-6


def agreement(exact: Sequence[float], approximate: Sequence[float]) -> float:
    """Return which share of the nearest an approximate search has found, from the scores of both, best first.

    Of texts that are equally near either counts, so that copies of a text do not look like misses.
    """
    nearest = exact[:NEAREST]
    if not nearest:
        return 1.0
    found = sum(score >= nearest[-1] - _EQUAL for score in approximate[: len(nearest)])
    return found / len(nearest)
