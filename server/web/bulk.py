"""Many memories at once: those that match a filter are shown, and then changed, confirmed or forgotten together."""

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Request, Response

from esker.server.core.errors import InvalidInput
from esker.server.core.records import SourcedMemory
from esker.server.rest.context import WithParts, WithPrincipal
from esker.server.usecases.audit_trail import record_page
from esker.server.usecases.change_many import CHANGES, Change, change_many, confirm_many
from esker.server.usecases.parts import Parts
from esker.server.usecases.remember import list_memories
from esker.server.web.forgetting import plan_page, receipt_page
from esker.server.web.page_route import CleanText, FormText, PageRoute
from esker.server.web.rendering import page
from esker.server.web.row_filter import RowFilter, WithRowFilter

router = APIRouter(prefix="/ui/bulk", route_class=PageRoute, include_in_schema=False)

MOST_ROWS = 200
"""The most rows that are changed at once."""
_MOST_READ = 2_000


async def _chosen(
    given: Annotated[list[CleanText], Form(alias="id", default_factory=list, max_length=MOST_ROWS)],
) -> list[str]:
    return _some(given)


async def _asked(
    given: Annotated[list[str], Query(alias="id", default_factory=list, max_length=MOST_ROWS)],
) -> list[str]:
    return _some(given)


def _some(given: list[str]) -> list[str]:
    if not given:
        raise InvalidInput("No row is chosen; nothing was changed.", hint="Go back and choose some.")
    return given


ChosenIds = Annotated[list[str], Depends(_chosen)]
AskedIds = Annotated[list[str], Depends(_asked)]


@router.get("")
async def show_matches(request: Request, chosen: WithRowFilter, parts: WithParts, principal: WithPrincipal) -> Response:
    """Show the live rows that match a filter, of which a person then chooses."""
    rows, reads_all = await _matching(parts, principal.pool_id, chosen)
    await record_page(parts, principal, "memory.list", principal.pool_name, len(rows))
    looked_through = None if reads_all else _MOST_READ
    return page(
        request, "bulk.html", rows=rows, chosen=chosen, most=MOST_ROWS, looked_through=looked_through, changes=CHANGES
    )


@router.post("/change")
async def change_rows(
    request: Request,
    ids: ChosenIds,
    change: Annotated[Change, Form()],
    parts: WithParts,
    principal: WithPrincipal,
) -> Response:
    """Pin or unpin the chosen rows, or give them another priority."""
    return page(request, "bulk_done.html", outcomes=await change_many(parts, principal, ids, change))


@router.post("/confirm")
async def confirm_rows(request: Request, ids: ChosenIds, parts: WithParts, principal: WithPrincipal) -> Response:
    """Confirm the chosen rows as a person's words."""
    return page(request, "bulk_done.html", outcomes=await confirm_many(parts, principal, ids))


@router.get("/forget")
async def show_forgetting_of_many(
    request: Request,
    ids: AskedIds,
    parts: WithParts,
    principal: WithPrincipal,
    messages: Annotated[bool, Query()] = False,
) -> Response:
    """Show all that would be forgotten with the chosen rows; nothing changes."""
    return await plan_page(request, parts, principal, ids, messages=messages)


@router.post("/forget")
async def forget_rows(
    request: Request,
    ids: ChosenIds,
    parts: WithParts,
    principal: WithPrincipal,
    shown: FormText,
    messages: Annotated[bool, Form()] = False,
) -> Response:
    """Forget the chosen rows with everything that was drawn from them or repeats them, and show the receipt."""
    return await receipt_page(request, parts, principal, ids, messages=messages, shown=shown)


async def _matching(parts: Parts, pool_id: str, chosen: RowFilter) -> tuple[list[SourcedMemory], bool]:
    """Return the newest rows that match a filter, one more than can be changed at once if there are more.

    Also return whether these are all, or enough: only the newest `_MOST_READ` rows are looked through.

    The list of a project shows the rows of none, too; these are changed only when no project is chosen.
    """
    matching, before = list[SourcedMemory](), None
    for _ in range(_MOST_READ // MOST_ROWS):
        found = await list_memories(parts, pool_id, chosen.rows, before=before, limit=MOST_ROWS)
        matching += [row for row in found if (chosen.rows.project is None or row.project) and not row.superseded_at]
        if len(found) < MOST_ROWS or len(matching) > MOST_ROWS:
            return matching[: MOST_ROWS + 1], True
        before = found[-1].id
    return matching, False
