"""Search: a question to memory, with the scores of its hits and the way to their evidence."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from esker.server.core.records import KINDS, PRIORITIES, Priority
from esker.server.rest.context import WithParts, WithPrincipal
from esker.server.usecases.binding import bound_recall
from esker.server.usecases.find_projects import project_names
from esker.server.usecases.recall import recall
from esker.server.usecases.recall_request import MAX_QUERY_CHARACTERS, RecallRequest
from esker.server.web.page_route import ChosenKind, PageRoute
from esker.server.web.rendering import page

router = APIRouter(prefix="/ui", route_class=PageRoute, include_in_schema=False)

MOST_PROJECTS = 200
"""The most projects from which one can be chosen."""
_MOST_HITS = 20


@router.get("/search")
async def search(
    request: Request,
    parts: WithParts,
    principal: WithPrincipal,
    q: Annotated[str, Query(max_length=MAX_QUERY_CHARACTERS)] = "",
    project: str = "",
    kind: ChosenKind = None,
    min_priority: Priority = "low",
    superseded: bool = False,
    only_hits: bool = False,
) -> Response:
    """Show the answer to a question; with `only_hits` the part of the page that changes while one types."""
    asked = RecallRequest(
        query=q,
        limit=_MOST_HITS,
        project=project or None,
        kinds=[kind] if kind else None,
        min_priority=min_priority,
        include_superseded=superseded,
        explain=True,
    )
    found = await recall(parts, principal.pool_id, bound_recall(principal, asked)) if q.strip() else None
    return page(
        request,
        "hits.html" if only_hits else "search.html",
        asked=asked,
        found=found,
        kinds=KINDS,
        priorities=PRIORITIES,
        projects=[] if only_hits else await project_names(parts, principal.pool_id, MOST_PROJECTS),
    )
