"""How well an approximate search agrees with an exact one."""

from collections.abc import Sequence

NEAREST = 10
"""How many of the nearest texts an index is checked for."""
LEAST = 0.98
"""The lowest agreement of a sound index, from 0 to 1."""
# Scores come from half precision; a smaller difference means equally near.
_EQUAL = 1e-6


def agreement(exact: Sequence[float], approximate: Sequence[float]) -> float:
    """Return the share of the nearest that an approximate search has found, from the scores of both, best first.

    Equally near texts count for each other, so that copies of a text do not look like misses.
    """
    nearest = exact[:NEAREST]
    if not nearest:
        return 1.0
    found = sum(score >= nearest[-1] - _EQUAL for score in approximate[: len(nearest)])
    return found / len(nearest)
