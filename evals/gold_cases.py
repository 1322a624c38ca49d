"""Cases with a log and its gold, and their scores."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Self

from pydantic import model_validator

from evals.case_files import AnyCase
from evals.reports import CaseResult
from evals.scoring.figures import ScoreFigure
from evals.scoring.gold import Domain, Gold, LogRow
from evals.scoring.matching import Judge, KeptRow
from evals.scoring.scored import score


class GoldCase(AnyCase, ABC):
    """A log and its gold; `rows` of an atom are ids of the log."""

    domain: Domain = "other"
    gold: Gold

    @abstractmethod
    def log(self) -> Sequence[LogRow]:
        """Return the log that rows cite."""

    @model_validator(mode="after")
    def _has_sound_gold(self) -> Self:
        log = self.log()
        texts = {row.id: row.text for row in log}
        faults = [*self.gold.faults(texts, self.language)]
        if len(texts) != len(log):
            faults.append("two rows or messages have the same id")
        if faults:
            raise ValueError("; ".join(faults))
        return self


def scored_case(
    case: GoldCase,
    left: Sequence[KeptRow],
    by: Judge,
    figures: Mapping[str, ScoreFigure] | None = None,
    amounts: Mapping[str, float] | None = None,
    lines: Sequence[str] = (),
) -> CaseResult:
    """Return the scores of the rows that are left of a log; `figures` and `amounts` are added, `lines` come first."""
    scored = score(case.gold, case.log(), left, by)
    figures = figures or {}
    why = [*lines, *scored.lines(), *(f"{name}: {fault}" for name, its in figures.items() for fault in its.faults)]
    sizes = {"shorter": scored.shorter, "facts/1k": scored.per_thousand_tokens}
    return CaseResult(case, (case.domain,), {**scored.figures, **figures}, {**sizes, **(amounts or {})}, why, left)
