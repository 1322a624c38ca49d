"""Give projects and directories whose names were forgotten the other names that they have since then."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from esker.server.core.facts.tombstones import holding
from esker.server.core.pool.lines import GroupLine, ImportBatch, MemoryLine, ReflectionLine, SessionLine
from esker.server.core.text.indexing import IndexedMemory
from esker.server.db.database import Connection
from esker.server.store import tombstones

_Line = TypeVar("_Line", SessionLine, GroupLine, MemoryLine, ReflectionLine)


async def new_names(connection: Connection, places: Mapping[str, datetime | None]) -> dict[str, str]:
    """Return the other names of those places that were forgotten.

    A place with a time has also another name if it contains words that were forgotten after that time.
    """
    digests = await tombstones.digests(connection) if places else None
    if digests is None:
        return {}
    names = {place: digests.of_place(place) for place in places}
    words = {place: digests.in_text(place) if said_at else set[bytes]() for place, said_at in places.items()}
    known = await tombstones.known(connection, set(names.values()).union(*words.values()))
    return {
        place: digests.name_for(place)
        for place, said_at in places.items()
        if names[place] in known or (said_at and any(holding(words[place], known, said_at)))
    }


async def batch_with_new_names(
    connection: Connection, batch: ImportBatch, rows: Iterable[IndexedMemory]
) -> tuple[ImportBatch, list[IndexedMemory]]:
    """Return lines, and the rows made of them, with the other names of places that were forgotten in this pool."""
    renamed = await new_names(connection, _places(batch))
    if not renamed:
        return batch, list(rows)
    changed = replace(
        batch,
        sessions=_renamed(batch.sessions, renamed),
        groups=_renamed(batch.groups, renamed),
        memories=_renamed(batch.memories, renamed),
        reflections=_renamed(batch.reflections, renamed),
    )
    places = {line.id: line.project for line in changed.memories.values()}
    kept = [row.memory for row in rows if row.memory.id in places]
    return changed, [IndexedMemory(replace(row, project=places[row.id])) for row in kept]


def _places(batch: ImportBatch) -> dict[str, datetime | None]:
    """Return all projects and directories, each with the earliest time of its lines."""
    lines = (*batch.sessions.values(), *batch.groups.values(), *batch.memories.values(), *batch.reflections.values())
    found: dict[str, datetime | None] = {}
    for line in sorted(lines, key=lambda line: line.created_at, reverse=True):
        found |= {place: line.created_at for name in ("project", "cwd") if (place := getattr(line, name, None))}
    return found


def _renamed(lines: Mapping[int, _Line], renamed: Mapping[str, str]) -> dict[int, _Line]:
    return {number: line.model_copy(update=_update(line, renamed)) for number, line in lines.items()}


def _update(line: _Line, renamed: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of a line that get another value."""
    places = {name: getattr(line, name, None) or "" for name in ("project", "cwd")}
    return {name: renamed[place] for name, place in places.items() if place in renamed}
