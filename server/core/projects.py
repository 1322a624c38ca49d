"""Projects by name: one that nobody has heard of, and those whose names are like it."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from heapq import nlargest

_MOST = 3
# Two names are alike from this share of common characters on (that of `SequenceMatcher`); one that stands in the other
# is as like it as this.
_ALIKE = 0.6
_CONTAINED = 0.7
_SHORTEST_CONTAINED = 3


@dataclass(frozen=True, slots=True)
class UnknownProject:
    """A project that was asked for and of which there is nothing; `nearest` are projects with names like it."""

    name: str
    nearest: list[str]


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Return up to three of the known names that are most like a name, the likest first."""
    scored = ((_likeness(name.casefold(), other.casefold()), other) for other in known)
    return [other for score, other in nlargest(_MOST, scored) if score >= _ALIKE]


def _likeness(one: str, other: str) -> float:
    """Return from 0 to 1 how alike two names are, as a whole or behind the last slash: people leave the owner out."""
    return max(_ratio(one, other), _ratio(_own(one), _own(other)))


def _own(name: str) -> str:
    return name.rpartition("/")[2] or name


def _ratio(one: str, other: str) -> float:
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    # Each is an upper bound of the next, and the last takes its time.
    if all(ratio() >= _ALIKE for ratio in (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)):
        return matcher.ratio()
    short, long = sorted((one, other), key=len)
    return _CONTAINED if len(short) >= _SHORTEST_CONTAINED and short in long else 0.0
