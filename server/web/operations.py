"""Operations: the state of the server, jobs and failed work with its errors, models, spending, keys, audit trail."""

from fastapi import APIRouter, Request, Response

from esker.server.rest.context import WithParts, WithPrincipal
from esker.server.usecases.audit_trail import read_audit
from esker.server.usecases.authenticate import list_keys
from esker.server.usecases.inspect import spaces_in, stuck_in
from esker.server.usecases.manage_jobs import list_jobs
from esker.server.usecases.pool_status import pool_status
from esker.server.usecases.report_status import pool_backlog, readiness
from esker.server.usecases.spending import report_spending
from esker.server.web.health import health_of
from esker.server.web.page_route import PageRoute
from esker.server.web.rendering import page

router = APIRouter(prefix="/ui", route_class=PageRoute, include_in_schema=False)

_DAYS = 30
_MOST_ENTRIES = 50
_MOST_JOBS = 20


@router.get("/operations")
async def show_operations(request: Request, parts: WithParts, principal: WithPrincipal) -> Response:
    """Show how the server is and what waits; to a key with the scope `admin` also the keys, and who did what."""
    pool_id, is_free, entries, keys = principal.pool_id, principal.project is None, None, None
    if "admin" in principal.scopes:
        entries = await read_audit(parts, pool_id, actor=None, action=None, before=None, limit=_MOST_ENTRIES)
        keys = await list_keys(parts, principal.pool_name)
    state, pool = await readiness(parts), await pool_status(parts, pool_id, principal.pool_name)
    # A key of a project is not told of the work, the errors and the spending of a whole pool, here as in the API.
    backlog = await pool_backlog(parts, pool_id) if is_free else None
    return page(
        request,
        "operations.html",
        readiness=state,
        health=health_of(state, pool, backlog, parts.embedders.broken if parts.embedders else None),
        pool=pool,
        backlog=backlog,
        jobs=(await list_jobs(parts, principal.pool_name, ["running", "ready"]))[:_MOST_JOBS] if is_free else [],
        stuck=await stuck_in(parts, pool_id) if is_free else None,
        spaces=await spaces_in(parts, pool_id) if is_free else [],
        spending=await report_spending(parts, pool_id, _DAYS) if is_free else None,
        entries=entries,
        keys=keys,
    )
