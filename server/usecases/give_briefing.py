"""Give a briefing: the rows that matter in a project, and the current task of its latest session."""

import asyncio

from esker.server.core.errors import InvalidInput
from esker.server.core.pack.briefing import MIN_TOKENS, Briefing, brief
from esker.server.core.pack.walks import walks_for
from esker.server.db.pipeline import fetch
from esker.server.store import memories, sessions
from esker.server.usecases.find_projects import renamed_project, unknown_project
from esker.server.usecases.name_project import stored_name
from esker.server.usecases.pack import best_rows
from esker.server.usecases.parts import Parts

MAX_TOKENS = 100_000


async def give_briefing(parts: Parts, pool_id: str, project: str | None, tokens: int) -> Briefing:
    """Return the pinned rows, the best-ranked high-priority rows and the current task of the latest session.

    For a project, these are its own rows and those without a project; for None, all rows of the pool. A project that
    nothing belongs to is reported as unknown. No model is called. Raises InvalidInput.
    """
    if not MIN_TOKENS <= tokens <= MAX_TOKENS:
        raise InvalidInput(f"tokens must be between {MIN_TOKENS} and {MAX_TOKENS:,}.")
    # Project names are stored redacted and in lower case.
    project = stored_name(project)
    now = parts.clock()
    async with parts.database.moment(pool_id) as connection:
        session = await sessions.latest_with_task(connection, project)
        pinned = await fetch(connection, memories.pinned(project, now))
        walks = [walk for walk in walks_for(project) if walk.priority == "high"]
        _, best = await best_rows(connection, walks, tokens, project=project, without_session=None, now=now)
        unknown = await unknown_project(connection, project)
    if unknown and (present := await renamed_project(parts, pool_id, project)):
        return await give_briefing(parts, pool_id, present, tokens)
    return await asyncio.to_thread(brief, project, pinned, best, session, tokens, unknown)
