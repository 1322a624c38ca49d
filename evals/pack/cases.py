"""The cases of the suite: rows of a pool, a session that begins, and which of them it has to begin with."""

from typing import Annotated

from pydantic import Field, model_validator

from esker.server.core.records import Category, Kind, Priority, Trust
from evals.case_files import AnyCase, CaseText, Name, StrictPart


class StoredRow(StrictPart):
    """A row of the pool: `project` None is for every project, `replaced_by` the row that holds instead."""

    id: Name
    text: CaseText
    days_ago: Annotated[float, Field(ge=0, le=3_000)] = 1.0
    kind: Kind = "observation"
    by: Trust = "user"
    priority: Priority = "medium"
    category: Category = "fact"
    project: Name | None = None
    replaced_by: Name | None = None
    ended_days_ago: Annotated[float, Field(ge=0, le=3_000)] | None = None


class PackCase(AnyCase):
    """A pool, the project of the session that begins, its budget in tokens, and what must and must not be shown."""

    project: Name | None
    budget: Annotated[int, Field(ge=100, le=10_000)]
    rows: Annotated[tuple[StoredRow, ...], Field(min_length=2, max_length=400)]
    must: tuple[Name, ...] = ()
    must_not: tuple[Name, ...] = ()

    @model_validator(mode="after")
    def _fits(self) -> "PackCase":
        ids = {row.id for row in self.rows}
        named = {*self.must, *self.must_not, *(row.replaced_by for row in self.rows if row.replaced_by)}
        faults = [f"there is no row {name}" for name in sorted(named - ids)]
        faults += [f"{name} must and must not be there" for name in sorted({*self.must} & {*self.must_not})]
        if len(ids) != len(self.rows):
            faults.append("two rows have one id")
        if not (self.must or self.must_not):
            faults.append("nothing is asked of the pack")
        if faults:
            raise ValueError("; ".join(faults))
        return self
