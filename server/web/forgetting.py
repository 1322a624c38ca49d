"""The page before something is forgotten, and the receipt: exactly the texts that the page showed are forgotten."""

from collections.abc import Sequence

from fastapi import Request, Response

from esker.server.core.errors import Conflict
from esker.server.core.facts.forgetting import ROW_REASONS, ForgetRequest, Selection
from esker.server.core.records import Principal
from esker.server.usecases.forget import forget, plan_forgetting
from esker.server.usecases.parts import Parts
from esker.server.web.rendering import page


async def plan_page(
    request: Request,
    parts: Parts,
    who: Principal,
    ids: Sequence[str],
    *,
    messages: bool,
    problem: str | None = None,
) -> Response:
    """Show all that would be forgotten with some rows; nothing changes. `problem`: why it is shown again."""
    plan = await plan_forgetting(parts, who.pool_id, _asked(ids, messages=messages))
    address, status = request.url.path, 409 if problem else 200
    shown = {"ids": ids, "plan": plan, "messages": messages, "reasons": ROW_REASONS}
    return page(request, "forget.html", status, address=address, problem=problem, **shown)


async def receipt_page(
    request: Request, parts: Parts, who: Principal, ids: Sequence[str], *, messages: bool, shown: str
) -> Response:
    """Forget some rows and show the receipt, or show again what would go if it is not what was `shown`, a digest."""
    try:
        receipt = await forget(parts, who, _asked(ids, messages=messages), shown=shown)
    except Conflict as conflict:
        return await plan_page(request, parts, who, ids, messages=messages, problem=str(conflict))
    return page(request, "receipt.html", receipt=receipt)


def _asked(ids: Sequence[str], *, messages: bool) -> ForgetRequest:
    return ForgetRequest(Selection(ids=ids), messages=messages)
