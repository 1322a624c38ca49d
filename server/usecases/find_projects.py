"""Find projects by name: an answer tells a misspelt or renamed project from one without memories."""

import asyncio
from collections.abc import Iterable, Mapping

from esker.server.core.reports import ProjectSummary
from esker.server.core.similar_projects import UnknownProject, nearest
from esker.server.db.database import Connection
from esker.server.db.pipeline import fetch
from esker.server.store import projects
from esker.server.usecases.forgotten_places import new_names
from esker.server.usecases.parts import Parts

# Most project names that an unknown one is compared with.
_MOST_NAMES = 2_000


async def unknown_project(connection: Connection, project: str | None) -> UnknownProject | None:
    """Return a project that nothing belongs to, with similar names; None if it is known."""
    if project is None or await fetch(connection, projects.is_known(project)):
        return None
    return await similar_projects(connection, project)


async def similar_projects(connection: Connection, project: str) -> UnknownProject:
    """Return a project that nothing belongs to, with its present name if it was renamed, and similar ones."""
    present = await fetch(connection, projects.present_names([project]))
    known = await projects.names(connection, _MOST_NAMES)
    similar = await asyncio.to_thread(nearest, project, known)
    return UnknownProject(project, list(dict.fromkeys([*present.values(), *similar])))


async def renamed_project(parts: Parts, pool_id: str, project: str | None) -> str | None:
    """Return the present name of a project that has another one, or None: its clients name it as before."""
    if project is None:
        return None
    async with parts.database.moment(pool_id) as connection:
        return (await renamed_projects(connection, [project])).get(project)


async def renamed_projects(
    connection: Connection, names: Iterable[str], forgotten: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return those of some names of projects that were renamed, merged or forgotten, with their present names.

    `forgotten` are the other names of those that were forgotten, if they are known already.
    """
    asked = list(names)
    if not asked:
        return {}
    if forgotten is None:
        forgotten = await new_names(connection, dict.fromkeys(asked))
    present = await fetch(connection, projects.present_names({*asked, *forgotten.values()}))
    named = {name: forgotten.get(name, name) for name in asked}
    return {name: found for name, given in named.items() if (found := present.get(given, given)) != name}


async def list_projects(parts: Parts, pool_id: str, limit: int) -> list[ProjectSummary]:
    """Return the projects of a pool with the most live memories, the most first."""
    async with parts.database.moment(pool_id) as connection:
        return await projects.with_memories(connection, limit, parts.clock())


async def project_names(parts: Parts, pool_id: str, limit: int) -> list[str]:
    """Return the names of the projects of a pool, in order; unlike `list_projects` without reading their rows."""
    async with parts.database.tenant(pool_id) as connection:
        return await projects.names(connection, limit)
