"""The route of briefings."""

from typing import Annotated

from fastapi import APIRouter, Query

from esker.server.core.pack.briefing import MIN_TOKENS, TOKENS, Briefing
from esker.server.rest.context import WithParts, WithPrincipal
from esker.server.rest.json_route import JsonRoute
from esker.server.usecases.binding import bound_project
from esker.server.usecases.give_briefing import MAX_TOKENS, give_briefing

router = APIRouter(prefix="/v1", tags=["memories"], route_class=JsonRoute)


@router.get("/briefing", operation_id="getBriefing")
async def briefing(
    parts: WithParts,
    principal: WithPrincipal,
    project: Annotated[str | None, Query(max_length=512)] = None,
    tokens: Annotated[int, Query(ge=MIN_TOKENS, le=MAX_TOKENS)] = TOKENS,
) -> Briefing:
    """Show the most important memories of a project or of the pool, and the state of its latest session."""
    return await give_briefing(parts, principal.pool_id, bound_project(principal, project), tokens)
