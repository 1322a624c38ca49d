"""The first page: how much is known, of what age and project, by which clients, and how the server is."""

from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response

from esker.server.rest.context import WithParts, WithPrincipal
from esker.server.usecases.overview import get_overview
from esker.server.usecases.pool_status import pool_status
from esker.server.usecases.report_status import pool_backlog, readiness
from esker.server.usecases.spending import report_spending
from esker.server.web.age_chart import GRAINS, Grain, age_chart
from esker.server.web.charts import Bar, longest
from esker.server.web.health import health_of
from esker.server.web.page_route import PageRoute
from esker.server.web.rendering import page

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/")
async def show_overview(
    request: Request, parts: WithParts, principal: WithPrincipal, by: Grain | None = None
) -> Response:
    """Show what the pool holds and how the server is; the ages of rows `by` week, month or year."""
    since = parts.clock()
    pool_id, is_free = principal.pool_id, principal.project is None
    found = await get_overview(parts, pool_id)
    pool = await pool_status(parts, pool_id, principal.pool_name)
    broken = parts.embedders.broken if parts.embedders else None
    return page(
        request,
        "overview.html",
        pool=pool,
        since=since,
        found=found,
        kinds=[Bar(kind, rows, _listed(kind=kind)) for kind, rows in found.live.kinds.items()],
        projects=longest(
            Bar(project or "no project", rows, _listed(project=project) if project else None)
            for project, rows in found.live.projects.items()
        ),
        clients=[Bar(each.client, each.sessions) for each in found.clients],
        ages=age_chart(found.live.ages, parts.clock(), by),
        grains=GRAINS,
        # The coverage and the spending of a whole pool say something about other projects.
        health=health_of(await readiness(parts), pool, await pool_backlog(parts, pool_id) if is_free else None, broken),
        spent=(await report_spending(parts, pool_id, 1)).today if is_free else None,
    )


def _listed(**filters: str) -> str:
    return f"/ui/memories?{urlencode(filters)}"
