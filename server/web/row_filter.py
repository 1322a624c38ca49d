"""The filter of a list of memories, as the address of a page has it."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends

from esker.server.core.records import Filter, Kind, Priority, at_least
from esker.server.rest.context import WithParts, WithPrincipal
from esker.server.usecases.binding import bound_project
from esker.server.usecases.name_project import stored_name
from esker.server.web.page_route import ChosenKind


@dataclass(frozen=True, slots=True)
class RowFilter:
    """The choices of a person in the form of a list, and the filter that they make."""

    kind: Kind | None
    min_priority: Priority
    rows: Filter


async def _row_filter(
    parts: WithParts,
    principal: WithPrincipal,
    project: str = "",
    kind: ChosenKind = None,
    min_priority: Priority = "low",
    superseded: bool = False,
) -> RowFilter:
    rows = Filter(
        moment=parts.clock(),
        project=stored_name(bound_project(principal, project or None)),
        kinds=[kind] if kind else None,
        priorities=at_least(min_priority),
        with_superseded=superseded,
    )
    return RowFilter(kind, min_priority, rows)


WithRowFilter = Annotated[RowFilter, Depends(_row_filter)]
