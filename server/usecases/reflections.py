"""List, inspect and undo reflections."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from esker.server.core.conversation.records import StoredSession
from esker.server.core.errors import Conflict
from esker.server.core.facts.condensing import is_insight
from esker.server.core.facts.records import Reflection
from esker.server.core.records import Memory, Principal, ReflectionScope
from esker.server.db.database import Connection
from esker.server.store import audit, memories, reflections, sessions
from esker.server.usecases.binding import check_row, check_sessions
from esker.server.usecases.pack import freeze_pack
from esker.server.usecases.parts import Parts
from esker.server.usecases.reflect import wait_for_more

RowChange = Literal["became", "dropped", "kept", "insight"]


@dataclass(frozen=True, slots=True)
class Changed:
    """One change of a reflection: rows `before`, and the row `after` that replaced them.

    `dropped` rows have no successor, `kept` ones stayed as they were, and an `insight` was added beside its rows.
    """

    change: RowChange
    before: list[Memory]
    after: Memory | None


@dataclass(frozen=True, slots=True)
class Diff:
    """The changes of a reflection, row by row, without rows that were forgotten since."""

    reflection: Reflection
    changes: list[Changed]


async def list_reflections(
    parts: Parts,
    pool_id: str,
    *,
    session_id: str | None = None,
    scope: ReflectionScope | None = None,
    before: str | None = None,
    limit: int = 100,
) -> list[Reflection]:
    """Return reflections, newest first, that are older than the one with the id `before`. Raises NotFound."""
    async with parts.database.tenant(pool_id) as connection:
        if session_id is not None:
            await sessions.get(connection, session_id)
        if before is not None:
            await reflections.get(connection, before)
        return await reflections.listed(connection, session_id=session_id, scope=scope, before=before, limit=limit)


async def reflected_sessions(parts: Parts, pool_id: str, found: Iterable[Reflection]) -> dict[str, StoredSession]:
    """Return the sessions of some reflections by their ids."""
    async with parts.database.tenant(pool_id) as connection:
        return await sessions.several(connection, {one.session_id for one in found if one.session_id})


async def get_reflection(parts: Parts, pool_id: str, reflection_id: str) -> Reflection:
    """Return one reflection. Raises NotFound."""
    async with parts.database.tenant(pool_id) as connection:
        return await reflections.get(connection, reflection_id)


async def diff_reflection(parts: Parts, pool_id: str, reflection_id: str) -> Diff:
    """Return what a reflection changed. Raises NotFound."""
    async with parts.database.tenant(pool_id) as connection:
        reflection = await reflections.get(connection, reflection_id)
        rows = await memories.get(connection, [*reflection.input_ids, *reflection.output_ids])
    return Diff(reflection, _changes(reflection, rows))


def _changes(reflection: Reflection, rows: Mapping[str, Memory]) -> list[Changed]:
    outputs = [rows[i] for i in reflection.output_ids if i in rows]
    changes = [
        Changed(
            "insight" if is_insight(row) else "became",
            [rows[i] for i in row.source_ids if i in rows],
            row,
        )
        for row in outputs
    ]
    cited = {i for row in outputs if not is_insight(row) for i in row.source_ids}
    dropped = {*reflection.dropped_ids}
    left = (i for i in reflection.input_ids if i in rows and i not in cited)
    return [*changes, *(Changed("dropped" if i in dropped else "kept", [rows[i]], None) for i in left)]


@dataclass(frozen=True, slots=True)
class Undone:
    """The effect of an undo: how many rows were restored, and how many rows of the reflection were superseded."""

    id: str
    restored: int
    taken_back: int


async def undo_reflection(parts: Parts, who: Principal, reflection_id: str) -> Undone:
    """Undo a reflection: the rows that it replaced are live again, and its own rows are superseded.

    A row that has replaced one of its rows since also replaces what that row had replaced. The session's pack is
    rebuilt; frozen packs that show rows of a pool reflection stay. Raises NotFound, and Conflict if the reflection
    changed nothing, was undone before, or a later one builds on it.
    """
    now = parts.clock()
    async with parts.database.tenant(who.pool_id) as connection:
        found = await reflections.get(connection, reflection_id)
        await _check_binding(connection, who, found)
        await _lock(connection, found)
        reflection = await reflections.get(connection, reflection_id, locked=True)
        await _require_undoable(connection, reflection)
        restored, taken_back = await memories.undo(connection, reflection, now)
        await reflections.undo(connection, reflection.id, now)
        if reflection.session_id:
            session = await sessions.get(connection, reflection.session_id)
            await wait_for_more(connection, session)
            await freeze_pack(parts, connection, session, "reflection", now)
        counts = {"restored": len(restored), "taken_back": len(taken_back)}
        await audit.insert(connection, who.actor, "reflection.undo", reflection.id, counts, now)
    return Undone(reflection.id, len(restored), len(taken_back))


async def _check_binding(connection: Connection, who: Principal, reflection: Reflection) -> None:
    """Raise Forbidden if a bound key may not write the session or the rows of a reflection."""
    if reflection.session_id:
        check_sessions(who, [await sessions.get(connection, reflection.session_id)])
    else:
        check_row(who, reflection.project)


async def _lock(connection: Connection, reflection: Reflection) -> None:
    """Lock the sessions and the rows that a reflection touched, in the common lock order."""
    touched = [*reflection.input_ids, *reflection.output_ids]
    rows = await memories.get(connection, touched)
    own = [reflection.session_id] if reflection.session_id else []
    await sessions.lock_all(connection, {*own, *(row.session_id for row in rows.values() if row.session_id)})
    # Also rows that were written again under the same external id: they replace the restored ones.
    names = {row.external_id for row in rows.values() if row.external_id}
    again = [named.id for named in (await memories.by_external_id(connection, names)).values()]
    await memories.lock_to_change(connection, {*touched, *again})


async def _require_undoable(connection: Connection, reflection: Reflection) -> None:
    """Raise Conflict for a reflection that cannot be taken back."""
    if reflection.state != "committed":
        raise Conflict(f"The reflection {reflection.id} was {reflection.state}; there is nothing to undo.")
    outputs = await memories.get(connection, reflection.output_ids)
    over = await memories.get(connection, {row.superseded_by for row in outputs.values() if row.superseded_by})
    later = {row.reflection_id for row in over.values() if row.reflection_id}
    by = (row.superseded_by or "" for row in outputs.values())
    later |= {superseder for superseder in by if superseder.startswith("ref_")}
    if later:
        raise Conflict(
            f"The reflection {min(later)} builds on this one.", hint=f"Undo {min(later)} first; its diff shows it."
        )
