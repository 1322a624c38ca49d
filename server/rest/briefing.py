"""The route of briefings."""

from typing import Annotated

from fastapi import APIRouter, Query

from esker.server.core.pack.briefing import MIN_TOKENS, TOKENS, Briefing
from esker.server.rest.context import Asking, WithParts
from esker.server.rest.json_route import JsonRoute
from esker.server.usecases.give_briefing import MAX_TOKENS, give_briefing

router = APIRouter(prefix="/v1", tags=["memories"], route_class=JsonRoute)


@router.get("/briefing")
async def briefing(
    parts: WithParts,
    asking: Asking,
    project: Annotated[str | None, Query(max_length=512)] = None,
    tokens: Annotated[int, Query(ge=MIN_TOKENS, le=MAX_TOKENS)] = TOKENS,
) -> Briefing:
    """Show what matters in a project, or in the pool, and what its latest session is at."""
    return await give_briefing(parts, asking.pool_id, project, tokens)
