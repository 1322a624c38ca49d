"""The route that says what language models cost."""

from typing import Annotated

from fastapi import APIRouter, Query

from esker.server.rest.context import Asking, WithParts
from esker.server.rest.json_route import JsonRoute
from esker.server.usecases.spending import MOST_DAYS, SpendReport, report_spending

router = APIRouter(prefix="/v1", tags=["spend"], route_class=JsonRoute)


@router.get("/spend")
async def spend(parts: WithParts, asking: Asking, days: Annotated[int, Query(ge=1, le=MOST_DAYS)] = 30) -> SpendReport:
    """Show what models cost today and may cost, and what they did by day, model and purpose."""
    return await report_spending(parts, asking.pool_id, days)
