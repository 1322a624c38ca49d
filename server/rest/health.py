"""Routes for the operator: liveness, readiness, status and metrics."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import TypeAdapter

from esker.server.core.reports import PoolStatus
from esker.server.rest.context import WithParts, WithPrincipal
from esker.server.rest.metrics import Metrics, render_backlog
from esker.server.usecases.pool_status import pool_status
from esker.server.usecases.report_status import Readiness, backlog, pool_backlog, readiness

router = APIRouter(tags=["health"])

_READINESS = TypeAdapter(Readiness)


@router.get("/livez")
async def alive() -> dict[str, str]:
    """Return 200 as long as the process runs."""
    return {"status": "alive"}


@router.get("/readyz", response_model=Readiness, responses={503: {"model": Readiness}})
async def ready(parts: WithParts) -> Response:
    """Return whether requests can be served (200) or not (503), and which models are in use."""
    found = await readiness(parts)
    status = 200 if found.ready else 503
    headers = {} if found.ready else {"Retry-After": "5"}
    return JSONResponse(_READINESS.dump_python(found, mode="json"), status, headers)


@router.get("/v1/status", tags=["memories"])
async def status(parts: WithParts, principal: WithPrincipal) -> PoolStatus:
    """Show what the pool contains, and how much of it is not searchable yet."""
    return await pool_status(parts, principal.pool_id, principal.pool_name)


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request, parts: WithParts, principal: WithPrincipal) -> Response:
    """Return metrics in the format of Prometheus: of the whole server with the scope admin, else of the key's pool."""
    if "admin" in principal.scopes:
        registry: Metrics = request.app.state.metrics
        text = registry.render(await backlog(parts))
    else:
        text = render_backlog(await pool_backlog(parts, principal.pool_id))
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
