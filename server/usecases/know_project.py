"""Recognize an unknown project, so that an answer can tell a misspelt name from a project without memories."""

import asyncio

from esker.server.core.similar_projects import UnknownProject, nearest
from esker.server.db.database import Connection
from esker.server.store import projects

# Most project names that an unknown one is compared with.
_MOST_NAMES = 2_000


async def unknown_project(connection: Connection, project: str | None) -> UnknownProject | None:
    """Return a project that nothing belongs to, with similar names; None if it is known."""
    if project is None or await projects.is_known(connection, project):
        return None
    known = await projects.names(connection, _MOST_NAMES)
    return UnknownProject(project, await asyncio.to_thread(nearest, project, known))
