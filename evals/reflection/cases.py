"""The cases of the suite: a log of rows, and the facts that should be left of it."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from evals.gold_cases import GoldCase
from evals.scoring.gold import LogRow


class ReflectionCase(GoldCase):
    """A log, which may have several sittings, and its gold."""

    rows: Annotated[tuple[LogRow, ...], Field(min_length=2, max_length=200)]

    def log(self) -> tuple[LogRow, ...]:
        """Return the rows."""
        return self.rows

    @property
    def sessions(self) -> list[str]:
        """The sittings of the log, in order."""
        return list(dict.fromkeys(row.session for row in self.rows))

    @model_validator(mode="after")
    def _is_in_order(self) -> Self:
        if [row.at for row in self.rows] != sorted(row.at for row in self.rows):
            raise ValueError("the rows are not in the order of their times")
        return self
