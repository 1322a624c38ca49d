"""The cases of the suite: rows of a pool, a new session, and the rows that its pack must and must not show."""

from typing import Annotated

from pydantic import Field, model_validator

from esker.server.core.records import Category, Kind, Priority, Trust
from evals.case_files import AnyCase, CaseText, Name, StrictPart


class StoredRow(StrictPart):
    """A row of the pool: `project` None means every project, `replaced_by` is the row that superseded it."""

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
    """A pool, the project of the new session, its budget in tokens, and the rows that must and must not be shown."""

    project: Name | None
    budget: Annotated[int, Field(ge=100, le=10_000)]
    rows: Annotated[tuple[StoredRow, ...], Field(min_length=2, max_length=400)]
    must: tuple[Name, ...] = ()
    must_not: tuple[Name, ...] = ()

    @model_validator(mode="after")
    def _fits(self) -> "PackCase":
        ids = {row.id for row in self.rows}
        named = {*self.must, *self.must_not, *(row.replaced_by for row in self.rows if row.replaced_by)}
        faults = [f"unknown row {name}" for name in sorted(named - ids)]
        faults += [f"{name} is in both must and must_not" for name in sorted({*self.must} & {*self.must_not})]
        if len(ids) != len(self.rows):
            faults.append("two rows have the same id")
        if not (self.must or self.must_not):
            faults.append("must and must_not are both empty")
        if faults:
            raise ValueError("; ".join(faults))
        return self
