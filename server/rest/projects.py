"""The route of the list of projects."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query

from esker.server.core.reports import ProjectSummary
from esker.server.rest.context import WithParts, WithPrincipal
from esker.server.rest.json_route import JsonRoute
from esker.server.usecases.know_project import list_projects

router = APIRouter(prefix="/v1", tags=["memories"], route_class=JsonRoute)

_MOST = 1_000


@dataclass(frozen=True, slots=True)
class ProjectList:
    """Projects with memories, the most memories first."""

    projects: list[ProjectSummary]


@router.get("/projects", operation_id="listProjects")
async def projects(
    parts: WithParts, principal: WithPrincipal, limit: Annotated[int, Query(ge=1, le=_MOST)] = 100
) -> ProjectList:
    """List the projects that have memories, with their numbers of memories."""
    return ProjectList(await list_projects(parts, principal.pool_id, limit))
