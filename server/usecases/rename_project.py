"""Rename a project, or merge it into another: all its rows get the name, and what clients send under the old one.

The clients go on naming the project by its repository, so its former name is kept and leads to the new one. A
transaction that was writing under the former name when it was renamed is not waited for; what it wrote is moved right
after it, and by the upkeep if the server stops before that.
"""

import asyncio
from functools import partial

from esker.server.core.errors import Conflict, InvalidInput, NotFound
from esker.server.core.pack.rendering import unknown_line
from esker.server.core.records import Principal
from esker.server.core.reports import ProjectCounts, ProjectMove
from esker.server.db.database import Connection
from esker.server.db.pipeline import fetch
from esker.server.store import audit, memories, projects
from esker.server.usecases.find_projects import similar_projects
from esker.server.usecases.in_each_pool import in_each_pool
from esker.server.usecases.name_project import stored_name
from esker.server.usecases.parts import Parts
from esker.server.usecases.remember import MAX_PINNED_TOKENS

_NOTHING = ProjectCounts(0, 0, 0, 0, 0)
# Transactions of writers are short; these pauses (seconds) outlast all but those that the upkeep looks after.
_PAUSES = (0.05, 0.2)


async def rename_project(
    parts: Parts, who: Principal, project: str, name: str, *, merge: bool, dry_run: bool
) -> ProjectMove:
    """Give a project another name, or with `merge` that of a project which exists; return what moves.

    It is one transaction, and doing it again changes nothing. Raises NotFound for an unknown project, Conflict if the
    name is taken, or is not with `merge`, or if a key is bound to the project; InvalidInput.
    """
    former, target = stored_name(project), stored_name(name)
    if former is None or target is None or former == target:
        raise InvalidInput("A project needs two different names, its present one and its new one.")
    async with parts.database.tenant(who.pool_id) as connection:
        await projects.lock(connection)
        moved, there = await projects.counts(connection, former), await projects.counts(connection, target)
        present = await fetch(connection, projects.present_names([former]))
        repeated = moved == _NOTHING and present.get(former) == target
        move = ProjectMove(former, target, moved, there, dry_run, repeated)
        if not repeated:
            await _check(parts, connection, move, merge=merge)
            if not dry_run:
                await _rename(parts, connection, who, move, merge=merge)
    if not (dry_run or repeated):
        for pause in _PAUSES:
            await asyncio.sleep(pause)
            await move_late_rows(parts, who.pool_id)
    return move


async def _check(parts: Parts, connection: Connection, move: ProjectMove, *, merge: bool) -> None:
    """Raise an error if a project cannot get a name."""
    for name, counts in ((move.project, move.moved), *([(move.name, move.there)] if merge else [])):
        if counts == _NOTHING:
            raise NotFound(f"Nothing was changed. {unknown_line(await similar_projects(connection, name))}")
    if move.there != _NOTHING and not merge:
        raise Conflict(
            f"A project {move.name!r} exists already; nothing was changed.",
            hint="Merge the two (`esker project merge`), which cannot be undone, or choose another name.",
        )
    if bound := (await projects.bound_keys(connection, parts.clock())).get(move.project):
        raise Conflict(
            f"Keys are bound to {move.project!r}: {', '.join(bound)}. They would not open it any more.",
            hint="Revoke them (`esker key revoke`), and create keys of the new name afterwards.",
        )


async def _rename(parts: Parts, connection: Connection, who: Principal, move: ProjectMove, *, merge: bool) -> None:
    now = parts.clock()
    await memories.lock_pins(connection)
    await projects.keep_former(connection, move.project, move.name, now)
    await projects.move(connection, move.project, move.name)
    if merge and await memories.pinned_tokens(connection, move.name) > MAX_PINNED_TOKENS:
        raise InvalidInput(
            f"More than {MAX_PINNED_TOKENS:,} tokens would be pinned for project {move.name!r}; nothing was changed.",
            hint="Unpin some of the rows of the two projects first.",
        )
    counts = {"sessions": move.moved.sessions, "memories": move.moved.memories, "passages": move.moved.passages}
    action = "project.merge" if merge else "project.rename"
    await audit.insert(connection, who.actor, action, who.pool_name, {**counts}, now)


async def move_all_late_rows(parts: Parts) -> int:
    """Move what was written under former names in all pools; return how many rows."""
    pools = await projects.pools_with_former(parts.database)
    return sum(await in_each_pool("moving rows of renamed projects", pools, partial(move_late_rows, parts)))


async def move_late_rows(parts: Parts, pool_id: str) -> int:
    """Move the rows of a pool that were written under former names of projects; return how many."""
    async with parts.database.tenant(pool_id) as connection:
        await projects.lock(connection)
        found = await projects.former_names(connection)
        return sum([await projects.move(connection, former, name) for former, name in found.items()])
