"""Routes for the operator: liveness, readiness, status and metrics."""

import logging
from dataclasses import dataclass
from typing import Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import TypeAdapter

from esker.server.core.errors import EskerError
from esker.server.core.reports import Measure, PoolStatus
from esker.server.rest.admission import Admission
from esker.server.rest.context import WithParts, WithPrincipal
from esker.server.rest.limits import Places
from esker.server.rest.metrics import Metrics, render_backlog
from esker.server.usecases.parts import Parts
from esker.server.usecases.pool_status import pool_status
from esker.server.usecases.report_status import (
    Readiness,
    backlog,
    operations,
    pool_backlog,
    process_state,
    readiness,
)

log = logging.getLogger(__name__)

router = APIRouter(tags=["health"])


@dataclass(frozen=True, slots=True)
class Alive:
    """The answer of a process that runs."""

    status: Literal["alive"]


_READINESS = TypeAdapter(Readiness)


@router.get("/livez", operation_id="checkLiveness")
async def alive() -> Alive:
    """Return 200 as long as the process runs."""
    return Alive("alive")


@router.get("/readyz", operation_id="checkReadiness", response_model=Readiness, responses={503: {"model": Readiness}})
async def ready(request: Request, parts: WithParts) -> Response:
    """Return whether requests can be served (200) or not (503), and which models are in use."""
    found = await readiness(parts)
    if found.reasons != request.app.state.unready:
        request.app.state.unready = found.reasons
        log.warning("not ready: %s", " ".join(found.reasons)) if found.reasons else log.info("ready again")
    status = 200 if found.ready else 503
    headers = {} if found.ready else {"Retry-After": "5"}
    return JSONResponse(_READINESS.dump_python(found, mode="json"), status, headers)


@router.get("/v1/status", operation_id="getStatus", tags=["memories"])
async def status(parts: WithParts, principal: WithPrincipal) -> PoolStatus:
    """Show what the pool contains, and how much of it is not searchable yet."""
    return await pool_status(parts, principal.pool_id, principal.pool_name)


@router.get("/metrics", operation_id="getMetrics", response_class=PlainTextResponse)
async def metrics(request: Request, parts: WithParts, principal: WithPrincipal) -> Response:
    """Return metrics in the format of Prometheus: of the whole server with the scope admin, else of the key's pool."""
    if "admin" in principal.scopes:
        text = await _of_server(request, parts)
    else:
        text = render_backlog(await pool_backlog(parts, principal.pool_id))
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


async def _of_server(request: Request, parts: Parts) -> bytes:
    """Return the metrics of the whole server; without the database, those that the process knows."""
    state = request.app.state
    registry: Metrics = state.metrics
    admission: Admission = state.admission
    exports: Places = state.exports
    process = process_state(parts) | {
        "requests_at_work": admission.at_work,
        "requests_queued": admission.waiting,
        "exports_running": exports.taken,
    }
    waiting: dict[str, float] | None = None
    measures: list[Measure] = []
    try:
        measures = await operations(parts)
        waiting = await backlog(parts)
    except EskerError as error:
        log.warning("metrics without the database: %s", error)
    return registry.render(process, waiting, measures)
