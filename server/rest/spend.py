"""The routes of the costs of language models, and of what memory saves of them."""

from typing import Annotated

from fastapi import APIRouter, Query

from esker.server.rest.context import WithParts, WithPrincipal
from esker.server.rest.json_route import JsonRoute
from esker.server.usecases.report_savings import MOST_SESSIONS, SavingsReport, report_savings
from esker.server.usecases.spending import MOST_DAYS, SpendReport, report_spending

router = APIRouter(prefix="/v1", tags=["spend"], route_class=JsonRoute)


@router.get("/spend", operation_id="getSpend")
async def spend(
    parts: WithParts, principal: WithPrincipal, days: Annotated[int, Query(ge=1, le=MOST_DAYS)] = 30
) -> SpendReport:
    """Show today's model costs and the cap, and past costs by day, model and purpose."""
    return await report_spending(parts, principal.pool_id, days)


@router.get("/savings", operation_id="getSavings")
async def savings(
    parts: WithParts,
    principal: WithPrincipal,
    days: Annotated[int, Query(ge=1, le=MOST_DAYS)] = 30,
    limit: Annotated[int, Query(ge=1, le=MOST_SESSIONS)] = 20,
) -> SavingsReport:
    """Show the tokens of clients' model calls beside those of the raw histories, by client and by session."""
    return await report_savings(parts, principal.pool_id, days=days, limit=limit)
