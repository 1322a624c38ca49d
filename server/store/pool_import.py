"""What a pool's file brings: which of it is there already, and the statements that write the rest as it was."""

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
    """A session that is there, by what cannot change of it."""

    id: str
    client: str
    external_id: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class KnownMessage:
    """A message that is there; without a hash its words were forgotten."""

    seq: int
    external_id: str
    content_hash: bytes


@dataclass(frozen=True, slots=True)
class KnownGroup:
    """A group that is there."""

    id: str
    session_id: str
    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class KnownMemory:
    """A memory that is there; `same` says whether it is the one of the file."""

    id: str
    same: bool
    live: bool


@dataclass(frozen=True, slots=True)
class KnownReflection:
    """A reflection that is there, by what cannot change of it."""

    id: str
    scope: str
    session_id: str | None
    project: str | None
    reflector: str
    created_at: datetime


@contextmanager
def told_as_conflict(first: int, last: int) -> Generator[None]:
    """Raise Conflict, with the numbers of the lines, for what the database does not take."""
    try:
        yield
    except (psycopg.IntegrityError, psycopg.DataError) as error:
        law = error.diag.constraint_name or error.diag.message_primary
        raise Conflict(
            f"Lines {first} to {last}: what they say does not fit together or into this pool ({law})."
        ) from None


async def lock(connection: Connection) -> None:
    """Be the only one that imports into this pool until the transaction ends."""
    await connection.execute(SQL["lock"])


async def known_sessions(connection: Connection, lines: Collection[SessionLine]) -> list[KnownSession]:
    """Return the sessions that are one of these, by id or by name."""
    values = {
        "ids": [line.id for line in lines],
        "clients": [line.client for line in lines],
        "external_ids": [line.external_id for line in lines],
    }
    async with connection.cursor(row_factory=class_row(KnownSession)) as cursor:
        await cursor.execute(SQL["known_sessions"], values)
        return await cursor.fetchall()


async def insert_sessions(connection: Connection, lines: Sequence[SessionLine]) -> None:
    """Write sessions without messages, with their events and packs."""
    rows = [
        line.model_dump(mode="json") | ({} if line.pack and line.pack.is_whole else {"pack": None}) for line in lines
    ]
    await connection.execute(SQL["insert_sessions"], {"rows": as_json(rows)})


async def catch_up(connection: Connection, lines: Sequence[SessionLine]) -> None:
    """Bring sessions that are there, and that the caller has locked, up to what the file knows of them."""
    sessions = [line.model_dump(mode="json", exclude={"events", "pack"}) for line in lines]
    events = [{"session_id": line.id, **event.model_dump(mode="json")} for line in lines for event in line.events]
    await connection.execute(SQL["add_events"], {"rows": as_json(events)})
    await connection.execute(SQL["catch_up"], {"rows": as_json(sessions)})


async def known_messages(
    connection: Connection, session_id: str, first: int, last: int, names: Collection[str]
) -> list[KnownMessage]:
    """Return the messages of a session from one seq to another, and those with one of these names."""
    values = {"session": session_id, "first": first, "last": last, "external_ids": list(names)}
    async with connection.cursor(row_factory=class_row(KnownMessage)) as cursor:
        await cursor.execute(SQL["known_messages"], values)
        return await cursor.fetchall()


async def known_groups(connection: Connection, ids: Collection[str]) -> dict[str, KnownGroup]:
    """Return those of these groups that are there, by id."""
    async with connection.cursor(row_factory=class_row(KnownGroup)) as cursor:
        await cursor.execute(SQL["known_groups"], {"ids": list(ids)})
        return {group.id: group for group in await cursor.fetchall()}


async def insert_groups(connection: Connection, lines: Sequence[GroupLine]) -> None:
    """Write groups, in order, and move the cursors of their sessions, which the caller has locked, over them."""
    await connection.execute(SQL["insert_groups"], {"rows": as_json(line.model_dump(mode="json") for line in lines)})
    reached = {line.session_id: line.last_seq for line in lines}
    await connection.execute(SQL["cover"], {"ids": list(reached), "last_seqs": list(reached.values())})


async def places(connection: Connection, ids: Collection[str]) -> set[str]:
    """Return those of these ids of sessions and groups that are there."""
    return await _ids(connection, "places", ids)


async def known_memories(connection: Connection, lines: Collection[MemoryLine]) -> dict[str, KnownMemory]:
    """Return those of these memories that are there, by id."""
    rows = as_json(line.model_dump(mode="json", exclude={"sources"}) for line in lines)
    async with connection.cursor(row_factory=class_row(KnownMemory)) as cursor:
        await cursor.execute(SQL["known_memories"], {"rows": rows})
        return {memory.id: memory for memory in await cursor.fetchall()}


async def superseders(connection: Connection, ids: Collection[str]) -> set[str]:
    """Return those of these memories and reflections that are there."""
    return await _ids(connection, "superseders", ids)


async def supersede(connection: Connection, lines: Sequence[MemoryLine]) -> None:
    """Let rows, which the caller has locked, be replaced as the file says."""
    columns = {"id", "superseded_by", "superseded_at", "outdated_at"}
    rows = as_json(line.model_dump(mode="json", include=columns) for line in lines)
    await connection.execute(SQL["supersede"], {"rows": rows})


async def known_sources(connection: Connection, ids: Collection[str]) -> set[tuple[str, str]]:
    """Return in which groups memories were said again, as pairs of ids."""
    cursor = await connection.execute(SQL["known_sources"], {"ids": list(ids)})
    return {(str(row[0]), str(row[1])) for row in await cursor.fetchall()}


async def say_again(connection: Connection, lines: Sequence[MemoryLine]) -> None:
    """Add where else rows, which the caller has locked, were said, and let them matter as much as in the file."""
    columns = {"id", "last_used_at", "priority", "tentative"}
    rows = as_json(line.model_dump(mode="json", include=columns) for line in lines)
    await connection.execute(SQL["say_again"], {"rows": rows})
    await insert_sources(connection, lines)


async def insert_sources(connection: Connection, lines: Sequence[MemoryLine]) -> None:
    """Write where else memories were said."""
    rows = [{"memory_id": line.id, **source.model_dump(mode="json")} for line in lines for source in line.sources]
    await connection.execute(SQL["insert_sources"], {"rows": as_json(rows)})


async def known_reflections(connection: Connection, ids: Collection[str]) -> dict[str, KnownReflection]:
    """Return those of these reflections that are there, by id."""
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
