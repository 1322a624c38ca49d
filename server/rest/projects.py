"""Routes of projects."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query

from esker.server.core.reports import ProjectMove, ProjectSummary
from esker.server.rest.context import WithParts, WithPrincipal
from esker.server.rest.json_route import JsonRoute
from esker.server.rest.schemas import RenameIn
from esker.server.usecases.find_projects import list_projects
from esker.server.usecases.rename_project import rename_project

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


@router.post("/projects/rename", operation_id="renameProject")
async def rename(body: RenameIn, parts: WithParts, principal: WithPrincipal) -> ProjectMove:
    """Give a project another name, or with `merge` the name of another project, whose rows it joins.

    Clients may go on naming it as before. With `dry_run`, only show what would move.
    """
    return await rename_project(parts, principal, body.project, body.name, merge=body.merge, dry_run=body.dry_run)
