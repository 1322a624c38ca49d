"""A score: how many of the checked things are right, and a line about each that is not."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScoreFigure:
    """`good` of `of` things are right; `faults` describes each of the others."""

    name: str
    good: int
    of: int
    faults: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """From 0 to 1, the more the better."""
        return self.good / self.of


def figure(name: str, faults: Iterable[str | None]) -> ScoreFigure:
    """Return a figure from one entry for each checked thing: its fault, or None if it is right."""
    looked_at = [*faults]
    wrong = tuple(fault for fault in looked_at if fault is not None)
    return ScoreFigure(name, len(looked_at) - len(wrong), len(looked_at), wrong)
