"""Suggests known projects whose names are similar to the name of an unknown one."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from heapq import nlargest

_MOST = 3
# The least `SequenceMatcher` ratio (0 to 1) of two similar names.
_SIMILAR = 0.6
# The similarity of two names of which one contains the other, if the shorter has at least three characters.
_CONTAINED = 0.7
_SHORTEST_CONTAINED = 3


@dataclass(frozen=True, slots=True)
class UnknownProject:
    """A requested project to which nothing belongs; `nearest` are known projects with similar names."""

    name: str
    nearest: list[str]


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Return up to three of the known names that are most similar to a name, the most similar first."""
    scored = ((_similarity(name.casefold(), other.casefold()), other) for other in known)
    return [other for score, other in nlargest(_MOST, scored) if score >= _SIMILAR]


def _similarity(one: str, other: str) -> float:
    """Return the similarity of two names, 0 to 1, with or without the owner, which people leave out."""
    return max(_ratio(one, other), _ratio(_without_owner(one), _without_owner(other)))


def _without_owner(name: str) -> str:
    return name.rpartition("/")[2] or name


def _ratio(one: str, other: str) -> float:
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    # Each ratio is an upper bound of the next one; only the last is slow.
    if all(ratio() >= _SIMILAR for ratio in (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)):
        return matcher.ratio()
    short, long = sorted((one, other), key=len)
    return _CONTAINED if len(short) >= _SHORTEST_CONTAINED and short in long else 0.0
