"""Routes for whoever runs the server: alive, ready, metrics."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import TypeAdapter

from esker.server.core.reports import PoolStatus
from esker.server.rest.context import Asking, WithParts
from esker.server.rest.metrics import Metrics
from esker.server.usecases.pool_status import pool_status
from esker.server.usecases.report_status import Readiness, backlog, readiness

router = APIRouter(tags=["health"])

_READINESS = TypeAdapter(Readiness)


@router.get("/livez")
async def alive() -> dict[str, str]:
    """Say that the process answers."""
    return {"status": "alive"}


@router.get("/readyz", response_model=Readiness)
async def ready(parts: WithParts) -> Response:
    """Say whether requests can be served (200) or not (503), and who does what models do."""
    found = await readiness(parts)
    status = 200 if found.ready else 503
    headers = {} if found.ready else {"Retry-After": "5"}
    return JSONResponse(_READINESS.dump_python(found, mode="json"), status, headers)


@router.get("/v1/status", tags=["memories"])
async def status(parts: WithParts, asking: Asking) -> PoolStatus:
    """Show what the pool holds, and what of it cannot be found yet."""
    return await pool_status(parts, asking.pool_id, asking.pool_name)


@router.get("/metrics")
async def metrics(request: Request, parts: WithParts) -> Response:
    """Return metrics as Prometheus reads them."""
    kept: Metrics = request.app.state.metrics
    return Response(kept.render(await backlog(parts)), media_type="text/plain; version=0.0.4; charset=utf-8")
