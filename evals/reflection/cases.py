"""The cases of the suite: a log of rows, and what should be left of it."""

from typing import Annotated

from pydantic import Field, model_validator

from evals.case_files import AnyCase
from evals.scoring.gold import Domain, Gold, LogRow


class ReflectionCase(AnyCase):
    """A log, which may be of several sittings, and its gold."""

    domain: Domain = "other"
    rows: Annotated[tuple[LogRow, ...], Field(min_length=2, max_length=200)]
    gold: Gold

    @property
    def sessions(self) -> list[str]:
        """The sittings of the log, in order."""
        return list(dict.fromkeys(row.session for row in self.rows))

    @model_validator(mode="after")
    def _fits(self) -> "ReflectionCase":
        texts = {row.id: row.text for row in self.rows}
        faults = [*self.gold.faults(texts, self.language)]
        if len(texts) != len(self.rows):
            faults.append("two rows have one id")
        if [row.at for row in self.rows] != sorted(row.at for row in self.rows):
            faults.append("the rows are not in the order of their times")
        if faults:
            raise ValueError("; ".join(faults))
        return self
