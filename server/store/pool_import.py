"""Imports the lines of a pool's file: finds rows that exist already, and writes the others."""

from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psycopg
from psycopg.rows import class_row

from esker.server.core.errors import Conflict
from esker.server.core.pool.lines import GroupLine, MemoryLine, ReflectionLine, SessionLine
from esker.server.db.database import Connection
from esker.server.db.statements import Statements, as_json

SQL = Statements(Path(__file__).parent / "sql/pool_import.sql")


@dataclass(frozen=True, slots=True)
class KnownSession:
    """An existing session, with the values that cannot change."""

    id: str
    client: str
    external_id: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class KnownMessage:
    """An existing message; an empty hash: its words were forgotten."""

    seq: int
    external_id: str
    content_hash: bytes


@dataclass(frozen=True, slots=True)
class KnownGroup:
    """An existing group."""

    id: str
    session_id: str
    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class KnownMemory:
    """An existing memory; `same`: it equals the one in the file."""

    id: str
    same: bool
    live: bool


@dataclass(frozen=True, slots=True)
class KnownReflection:
    """An existing reflection, with the values that cannot change."""

    id: str
    scope: str
    session_id: str | None
    project: str | None
    reflector: str
    created_at: datetime


@contextmanager
def raising_conflict(first: int, last: int) -> Generator[None]:
    """Raise Conflict, with the numbers of the lines, for data that the database refuses."""
    try:
        yield
    except (psycopg.IntegrityError, psycopg.DataError) as error:
        constraint = error.diag.constraint_name or error.diag.message_primary
        raise Conflict(f"Lines {first} to {last} contradict each other or this pool ({constraint}).") from None


async def lock(connection: Connection) -> None:
    """Serialise imports into this pool until the transaction ends."""
    await connection.execute(SQL["lock"])


async def known_sessions(connection: Connection, lines: Collection[SessionLine]) -> list[KnownSession]:
    """Return the existing sessions with the id, or the client and external id, of one of these lines."""
    values = {
        "ids": [line.id for line in lines],
        "clients": [line.client for line in lines],
        "external_ids": [line.external_id for line in lines],
    }
    async with connection.cursor(row_factory=class_row(KnownSession)) as cursor:
        await cursor.execute(SQL["known_sessions"], values)
        return await cursor.fetchall()


async def insert_sessions(connection: Connection, lines: Sequence[SessionLine]) -> None:
    """Write sessions without messages, with their events. Their packs are frozen anew at the next request."""
    rows = [line.model_dump(mode="json", exclude={"pack"}) for line in lines]
    await connection.execute(SQL["insert_sessions"], {"rows": as_json(rows)})


async def catch_up(connection: Connection, lines: Sequence[SessionLine]) -> None:
    """Update existing sessions, which the caller has locked, if the file has observed more of them."""
    sessions = [line.model_dump(mode="json", exclude={"events", "pack"}) for line in lines]
    events = [{"session_id": line.id, **event.model_dump(mode="json")} for line in lines for event in line.events]
    await connection.execute(SQL["add_events"], {"rows": as_json(events)})
    await connection.execute(SQL["catch_up"], {"rows": as_json(sessions)})


async def known_messages(
    connection: Connection, session_id: str, first: int, last: int, names: Collection[str]
) -> list[KnownMessage]:
    """Return the messages of a session from one seq to another, and those with one of these external ids."""
    values = {"session": session_id, "first": first, "last": last, "external_ids": list(names)}
    async with connection.cursor(row_factory=class_row(KnownMessage)) as cursor:
        await cursor.execute(SQL["known_messages"], values)
        return await cursor.fetchall()


async def known_groups(connection: Connection, ids: Collection[str]) -> dict[str, KnownGroup]:
    """Return those of these groups that exist, by id."""
    async with connection.cursor(row_factory=class_row(KnownGroup)) as cursor:
        await cursor.execute(SQL["known_groups"], {"ids": list(ids)})
        return {group.id: group for group in await cursor.fetchall()}


async def insert_groups(connection: Connection, lines: Sequence[GroupLine]) -> None:
    """Write groups, in order, and move the cursors of their sessions, which the caller has locked, over them."""
    await connection.execute(SQL["insert_groups"], {"rows": as_json(line.model_dump(mode="json") for line in lines)})
    reached = {line.session_id: line.last_seq for line in lines}
    await connection.execute(SQL["cover"], {"ids": list(reached), "last_seqs": list(reached.values())})


async def existing_parents(connection: Connection, ids: Collection[str]) -> set[str]:
    """Return the ids of existing sessions and groups among these."""
    return await _ids(connection, "existing_parents", ids)


async def known_memories(connection: Connection, lines: Collection[MemoryLine]) -> dict[str, KnownMemory]:
    """Return those of these memories that exist, by id."""
    rows = as_json(line.model_dump(mode="json", exclude={"sources"}) for line in lines)
    async with connection.cursor(row_factory=class_row(KnownMemory)) as cursor:
        await cursor.execute(SQL["known_memories"], {"rows": rows})
        return {memory.id: memory for memory in await cursor.fetchall()}


async def superseders(connection: Connection, ids: Collection[str]) -> set[str]:
    """Return the ids of existing memories and reflections among these."""
    return await _ids(connection, "superseders", ids)


async def supersede(connection: Connection, lines: Sequence[MemoryLine]) -> None:
    """Supersede rows, which the caller has locked, as in the file."""
    columns = {"id", "superseded_by", "superseded_at", "outdated_at"}
    rows = as_json(line.model_dump(mode="json", include=columns) for line in lines)
    await connection.execute(SQL["supersede"], {"rows": rows})


async def known_sources(connection: Connection, ids: Collection[str]) -> set[tuple[str, str]]:
    """Return pairs of memory id and group id for memories that were said again."""
    cursor = await connection.execute(SQL["known_sources"], {"ids": list(ids)})
    return {(str(row[0]), str(row[1])) for row in await cursor.fetchall()}


async def add_restatements(connection: Connection, lines: Sequence[MemoryLine]) -> None:
    """Add sources to rows, which the caller has locked, and raise their priority and last use to those in the file."""
    columns = {"id", "last_used_at", "priority", "tentative"}
    rows = as_json(line.model_dump(mode="json", include=columns) for line in lines)
    await connection.execute(SQL["add_restatements"], {"rows": rows})
    await insert_sources(connection, lines)


async def insert_sources(connection: Connection, lines: Sequence[MemoryLine]) -> None:
    """Write further sources of memories."""
    rows = [{"memory_id": line.id, **source.model_dump(mode="json")} for line in lines for source in line.sources]
    await connection.execute(SQL["insert_sources"], {"rows": as_json(rows)})


async def known_reflections(connection: Connection, ids: Collection[str]) -> dict[str, KnownReflection]:
    """Return those of these reflections that exist, by id."""
    async with connection.cursor(row_factory=class_row(KnownReflection)) as cursor:
        await cursor.execute(SQL["known_reflections"], {"ids": list(ids)})
        return {reflection.id: reflection for reflection in await cursor.fetchall()}


async def insert_reflections(connection: Connection, lines: Sequence[ReflectionLine]) -> None:
    """Write reflections."""
    rows = as_json(line.model_dump(mode="json") for line in lines)
    await connection.execute(SQL["insert_reflections"], {"rows": rows})


async def _ids(connection: Connection, statement: str, ids: Collection[str]) -> set[str]:
    cursor = await connection.execute(SQL[statement], {"ids": list(ids)})
    return {str(row[0]) for row in await cursor.fetchall()}
