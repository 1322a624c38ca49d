"""Sessions: a list, the timeline of one, and its pack as the agent sees it."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response

from esker.server.core.page_cursor import PageCursor, read_cursor
from esker.server.rest.context import SHOWS_PACK, WithParts, WithPrincipal
from esker.server.usecases.audit_trail import record_page
from esker.server.usecases.binding import bound_project
from esker.server.usecases.find_projects import project_names
from esker.server.usecases.name_project import stored_name
from esker.server.usecases.open_session import list_sessions
from esker.server.usecases.session_memory import session_memory
from esker.server.usecases.show_pack import compare_packs, show_pack
from esker.server.usecases.timeline import get_timeline
from esker.server.web.page_route import PageRoute
from esker.server.web.rendering import page
from esker.server.web.search import MOST_PROJECTS

router = APIRouter(prefix="/ui/sessions", route_class=PageRoute, include_in_schema=False)

Version = Annotated[int, Query(ge=1, le=2**31 - 1)]
"""The number of a version of a pack."""
_ON_A_PAGE = 50
_MESSAGES = 60


@router.get("")
async def show_sessions(
    request: Request, parts: WithParts, principal: WithPrincipal, project: str = "", before: str | None = None
) -> Response:
    """List sessions, all or those of a project, the most recently begun first."""
    chosen = stored_name(bound_project(principal, project or None))
    found = await list_sessions(
        parts,
        principal.pool_id,
        external_id=None,
        project=chosen,
        unobserved=False,
        unreflected=False,
        before=read_cursor(before) if before else None,
        limit=_ON_A_PAGE,
    )
    cursor = str(PageCursor(found[-1].begun_at, found[-1].id)) if len(found) == _ON_A_PAGE else None
    projects = await project_names(parts, principal.pool_id, MOST_PROJECTS)
    more = urlencode({"project": project, "before": cursor}) if cursor else None
    return page(request, "sessions.html", sessions=found, next=more, chosen=chosen, projects=projects)


@router.get("/{session_id}")
async def show_session(
    request: Request,
    session_id: str,
    parts: WithParts,
    principal: WithPrincipal,
    after: Annotated[int, Query(ge=0, le=2**62)] = 0,
) -> Response:
    """Show the messages of a session with the groups and rows that were made from them."""
    found = await get_timeline(parts, principal.pool_id, session_id, after=after, limit=_MESSAGES)
    await record_page(parts, principal, "session.read", session_id, len(found.moments))
    last = found.moments[-1].message.seq if found.moments else after
    return page(
        request,
        "session.html",
        found=found,
        memory=await session_memory(parts, principal.pool_id, session_id),
        before=max(0, after - _MESSAGES) if after else None,
        next=last if last < found.session.last_seq else None,
    )


@router.get("/{session_id}/pack/changes", dependencies=SHOWS_PACK)
async def show_changes_of_pack(
    request: Request, session_id: str, older: Version, newer: Version, parts: WithParts, principal: WithPrincipal
) -> Response:
    """Show which rows came and went between two versions of a session's pack, and why."""
    found = await compare_packs(parts, principal.pool_id, session_id, older, newer)
    return page(request, "pack_changes.html", found=found, session_id=session_id)


@router.get("/{session_id}/pack", dependencies=SHOWS_PACK)
async def show_its_pack(request: Request, session_id: str, parts: WithParts, principal: WithPrincipal) -> Response:
    """Show the pack of a session, and why each row is in it or just missed it."""
    return page(request, "pack.html", found=await show_pack(parts, principal.pool_id, session_id))
