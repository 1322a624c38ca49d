"""Knowing a project: a misspelt one looks like one that nothing is remembered of, so an answer says which it is."""

import asyncio

from esker.server.core.projects import UnknownProject, nearest
from esker.server.db.database import Connection
from esker.server.store import projects

# Names are compared with so many.
_MOST_NAMES = 2_000


async def unknown_project(connection: Connection, project: str | None) -> UnknownProject | None:
    """Return a project that nothing belongs to, with those whose names are like it; None where it is known."""
    if project is None or await projects.is_known(connection, project):
        return None
    known = await projects.names(connection, _MOST_NAMES)
    return UnknownProject(project, await asyncio.to_thread(nearest, project, known))
