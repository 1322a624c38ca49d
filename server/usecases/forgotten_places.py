"""Give projects, directories, clients and their ids that were forgotten the other names that they have since then."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from esker.server.core.facts.forgetting import Selection
from esker.server.core.facts.tombstones import holding
from esker.server.core.pool.lines import (
    GroupLine,
    ImportBatch,
    MemoryLine,
    MessageLine,
    ReflectionLine,
    SessionLine,
)
from esker.server.core.text.indexing import IndexedMemory
from esker.server.db.database import Connection
from esker.server.store import tombstones
from esker.server.store.text_columns import kept_clients

_Line = TypeVar("_Line", SessionLine, MessageLine, GroupLine, MemoryLine, ReflectionLine)
# The columns of lines that hold the name of a place, an id that a client gave, or a word about who wrote it and why.
_NAMED = (
    *("project", "cwd", "external_id", "first_external_id", "last_external_id"),
    *("author", "observer", "reflector", "reason"),
)
# Names that are looked up at once.
_AT_ONCE = 10_000


async def new_names(connection: Connection, places: Mapping[str, datetime | None]) -> dict[str, str]:
    """Return the other names of those places that were forgotten.

    A place with a time has also another name if it contains words that were forgotten after that time.
    """
    digests = await tombstones.digests(connection) if places else None
    if digests is None:
        return {}
    found: dict[str, str] = {}
    asked = list(places.items())
    for some in (asked[start : start + _AT_ONCE] for start in range(0, len(asked), _AT_ONCE)):
        names = {place: digests.of_place(place) for place, _ in some}
        words = {place: digests.in_text(place) if said_at else set[bytes]() for place, said_at in some}
        known = await tombstones.known(connection, set(names.values()).union(*words.values()))
        found |= {
            place: digests.name_for(place)
            for place, said_at in some
            if names[place] in known or (said_at and any(holding(words[place], known, said_at)))
        }
    return found


async def with_new_names(connection: Connection, limits: Selection) -> Selection:
    """Return limits with the other names of their project and their client, if these were forgotten."""
    renamed = await new_names(connection, dict.fromkeys(filter(None, (limits.project, limits.client))))
    client = limits.client
    if client in renamed and client not in await kept_clients(connection):
        client = renamed[client]
    return replace(limits, project=renamed.get(limits.project or "", limits.project), client=client)


async def batch_with_new_names(
    connection: Connection, batch: ImportBatch, rows: Iterable[IndexedMemory]
) -> tuple[ImportBatch, list[IndexedMemory]]:
    """Return lines, and the rows made of them, with the other names of places that were forgotten in this pool."""
    renamed = await new_names(connection, _places(batch))
    if not renamed:
        return batch, list(rows)
    kept = await kept_clients(connection)
    clients = {name: new for name, new in renamed.items() if name not in kept}
    named = _renamed(batch.sessions, renamed)
    changed = replace(
        batch,
        sessions={number: _with_new_client(_with_new_events(line, renamed), clients) for number, line in named.items()},
        messages=_renamed(batch.messages, renamed),
        groups=_renamed(batch.groups, renamed),
        memories=_renamed(batch.memories, renamed),
        reflections=_renamed(batch.reflections, renamed),
    )
    lines = {line.id: line for line in changed.memories.values()}
    kept = [(row.memory, lines[row.memory.id]) for row in rows if row.memory.id in lines]
    return changed, [
        IndexedMemory(replace(row, project=line.project, external_id=line.external_id, author=line.author))
        for row, line in kept
    ]


def _places(batch: ImportBatch) -> dict[str, datetime | None]:
    """Return all projects, directories, clients and ids, each with the earliest time of its lines."""
    dated = [
        (line.created_at, line)
        for lines in (batch.sessions, batch.groups, batch.memories, batch.reflections)
        for line in lines.values()
    ]
    told = [(line.received_at, line) for line in batch.messages.values()]
    found: dict[str, datetime | None] = {}
    for at, line in sorted((*dated, *told), key=lambda each: each[0], reverse=True):
        found |= {place: at for name in _NAMED if (place := getattr(line, name, None))}
    for line in batch.sessions.values():
        found |= {event.dedupe_key: event.received_at for event in line.events}
        found.setdefault(line.client, line.created_at)
    return found


def _with_new_client(line: SessionLine, renamed: Mapping[str, str]) -> SessionLine:
    return line.model_copy(update={"client": renamed[line.client]}) if line.client in renamed else line


def _with_new_events(line: SessionLine, renamed: Mapping[str, str]) -> SessionLine:
    events = [
        event.model_copy(update={"dedupe_key": renamed.get(event.dedupe_key, event.dedupe_key)})
        for event in line.events
    ]
    return line.model_copy(update={"events": events})


def _renamed(lines: Mapping[int, _Line], renamed: Mapping[str, str]) -> dict[int, _Line]:
    return {number: line.model_copy(update=_update(line, renamed)) for number, line in lines.items()}


def _update(line: _Line, renamed: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of a line that get another value."""
    places = {name: getattr(line, name, None) or "" for name in _NAMED}
    return {name: renamed[place] for name, place in places.items() if place in renamed}
