"""The first page: how much is known, of what age and project, by which clients, and how the server is."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fastapi import APIRouter, Request, Response

from esker.server.core.records import KINDS, Kind
from esker.server.core.reports import WeekSummary
from esker.server.rest.context import WithParts, WithPrincipal
from esker.server.usecases.overview import WEEKS, get_overview
from esker.server.usecases.pool_status import pool_status
from esker.server.usecases.report_status import pool_backlog, readiness
from esker.server.usecases.spending import report_spending
from esker.server.web.page_route import PageRoute
from esker.server.web.rendering import page

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Week:
    """A bar of the chart: the rows of a week by kind, and how many there are."""

    begins: datetime
    by_kind: dict[Kind, int]

    @property
    def rows(self) -> int:
        """How many rows of any kind were said in this week."""
        return sum(self.by_kind.values())


def weeks_of(found: Sequence[WeekSummary], now: datetime) -> list[Week]:
    """Return the last weeks, oldest first, those without rows included."""
    monday = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=now.weekday())
    begins = [monday - timedelta(weeks=weeks) for weeks in reversed(range(WEEKS))]
    counted = {(each.week, each.kind): each.rows for each in found}
    return [Week(week, {kind: counted.get((week, kind), 0) for kind in KINDS}) for week in begins]


@router.get("/")
async def show_overview(request: Request, parts: WithParts, principal: WithPrincipal) -> Response:
    """Show what the pool holds and how the server is."""
    found = await get_overview(parts, principal.pool_id)
    return page(
        request,
        "overview.html",
        pool=await pool_status(parts, principal.pool_id, principal.pool_name),
        found=found,
        weeks=weeks_of(found.weeks, parts.clock()),
        backlog=await pool_backlog(parts, principal.pool_id),
        readiness=await readiness(parts),
        spent=(await report_spending(parts, principal.pool_id, 1)).today,
    )
