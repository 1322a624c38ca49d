"""A score: how many of how many things are as they should be, and a line about each that is not."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScoreFigure:
    """How many of how many are `good`; `faults` say in words what is not."""

    name: str
    good: int
    of: int
    faults: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """From 0 to 1, the more the better."""
        return self.good / self.of


def figure(name: str, faults: Iterable[str | None]) -> ScoreFigure:
    """Return a figure from a line for each thing that was looked at, None where it is as it should be."""
    looked_at = [*faults]
    wrong = tuple(fault for fault in looked_at if fault is not None)
    return ScoreFigure(name, len(looked_at) - len(wrong), len(looked_at), wrong)
