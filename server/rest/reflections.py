"""Routes of reflections: condense the pool, show what changed, undo it."""

from fastapi import APIRouter, Response

from esker.server.core.facts.records import Reflection
from esker.server.core.records import ReflectionScope
from esker.server.rest.context import WithParts, WithPrincipal
from esker.server.rest.json_route import JsonRoute
from esker.server.rest.schemas import PageLimit, PoolReflectionIn, PoolReflectionPlan, ReflectionList
from esker.server.usecases.reflect import ReflectReport
from esker.server.usecases.reflect_pool import PoolReflection, plan_pool_reflection, reflect_pool
from esker.server.usecases.reflections import (
    Diff,
    Undone,
    diff_reflection,
    get_reflection,
    list_reflections,
    undo_reflection,
)

router = APIRouter(prefix="/v1", tags=["reflections"], route_class=JsonRoute)


@router.post(
    "/reflect",
    operation_id="reflectPool",
    response_model=None,
    responses={200: {"model": ReflectReport | PoolReflectionPlan}, 202: {"model": ReflectReport}},
)
async def reflect_whole_pool(
    response: Response,
    parts: WithParts,
    principal: WithPrincipal,
    body: PoolReflectionIn | None = None,
    wait: bool = False,
) -> ReflectReport | PoolReflectionPlan:
    """Condense the memories that sessions left days ago; with `dry_run`, only list the candidates."""
    given = body or PoolReflectionIn()
    options = PoolReflection(given.project, given.min_age_days, given.target_tokens)
    if given.dry_run:
        batches = await plan_pool_reflection(parts, principal.pool_id, options)
        return PoolReflectionPlan(
            dry_run=True,
            rows=sum(batch.rows for batch in batches),
            tokens=sum(batch.tokens for batch in batches),
            batches=batches,
        )
    report = await reflect_pool(parts, principal.pool_id, options, wait=wait)
    response.status_code = 202 if report.queued else 200
    return report


@router.get("/reflections", operation_id="listReflections")
async def listed(
    parts: WithParts,
    principal: WithPrincipal,
    session_id: str | None = None,
    scope: ReflectionScope | None = None,
    before: str | None = None,
    limit: PageLimit = 100,
) -> ReflectionList:
    """List reflections, newest first, including rejected ones."""
    found = await list_reflections(
        parts, principal.pool_id, session_id=session_id, scope=scope, before=before, limit=limit
    )
    return ReflectionList(reflections=found, next=found[-1].id if len(found) == limit else None)


@router.get("/reflections/{reflection_id}", operation_id="getReflection")
async def reflection_by_id(reflection_id: str, parts: WithParts, principal: WithPrincipal) -> Reflection:
    """Show one reflection: its input, its output and its cost."""
    return await get_reflection(parts, principal.pool_id, reflection_id)


@router.get("/reflections/{reflection_id}/diff", operation_id="diffReflection")
async def diff(reflection_id: str, parts: WithParts, principal: WithPrincipal) -> Diff:
    """Show what a reflection changed, row by row."""
    return await diff_reflection(parts, principal.pool_id, reflection_id)


@router.post("/reflections/{reflection_id}/undo", operation_id="undoReflection")
async def undo(reflection_id: str, parts: WithParts, principal: WithPrincipal) -> Undone:
    """Undo a reflection: the memories it replaced are live again."""
    return await undo_reflection(parts, principal, reflection_id)
