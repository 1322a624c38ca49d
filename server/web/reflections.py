"""Reflections: a list, and the changes of one with a way to undo it."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from esker.server.rest.context import WithParts, WithPrincipal
from esker.server.usecases.reflections import diff_reflection, list_reflections, reflected_sessions, undo_reflection
from esker.server.web.page_route import PageRoute
from esker.server.web.rendering import HEADERS, page
from esker.server.web.row_changes import shown_changes, word_changes

router = APIRouter(prefix="/ui/reflections", route_class=PageRoute, include_in_schema=False)

_ON_A_PAGE = 50


@router.get("")
async def show_reflections(
    request: Request, parts: WithParts, principal: WithPrincipal, before: str | None = None
) -> Response:
    """List reflections, newest first."""
    found = await list_reflections(parts, principal.pool_id, before=before, limit=_ON_A_PAGE)
    return page(
        request,
        "reflections.html",
        reflections=found,
        sessions=await reflected_sessions(parts, principal.pool_id, found),
        next=found[-1].id if len(found) == _ON_A_PAGE else None,
    )


@router.get("/{reflection_id}")
async def show_reflection(request: Request, reflection_id: str, parts: WithParts, principal: WithPrincipal) -> Response:
    """Show what a reflection changed, row by row."""
    diff = await diff_reflection(parts, principal.pool_id, reflection_id)
    return page(
        request,
        "reflection.html",
        one=diff.reflection,
        shown=shown_changes(diff.changes),
        word_changes=word_changes,
    )


@router.post("/{reflection_id}/undo")
async def undo(reflection_id: str, parts: WithParts, principal: WithPrincipal) -> Response:
    """Undo a reflection, and show it."""
    undone = await undo_reflection(parts, principal, reflection_id)
    return RedirectResponse(f"/ui/reflections/{undone.id}", 303, HEADERS)
