"""Reflections: which rows were condensed into which."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from psycopg.rows import class_row

from esker.server.core.errors import NotFound
from esker.server.core.facts.records import Reflection
from esker.server.core.records import ReflectionScope, TokenUse
from esker.server.db.database import Connection
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/reflections.sql")


@dataclass(frozen=True, slots=True)
class ReflectionSubject:
    """The rows of a reflection: those of a session, or (without one) of a project in the pool."""

    session_id: str | None
    project: str | None

    @property
    def scope(self) -> ReflectionScope:
        """The scope of the reflection."""
        return "session" if self.session_id else "pool"


async def insert(
    connection: Connection,
    *,
    reflection_id: str,
    subject: ReflectionSubject,
    reflector: str,
    level: int,
    input_ids: Sequence[str],
    tokens_before: int,
    tokens_after: int,
    used: TokenUse,
    now: datetime,
    output_ids: Sequence[str] = (),
    dropped_ids: Sequence[str] = (),
    reason: str | None = None,
) -> None:
    """Record one reflection; with a `reason` it changed nothing. Tokens before and after are our estimates."""
    values = {
        "id": reflection_id,
        "scope": subject.scope,
        "session": subject.session_id,
        "project": subject.project,
        "reflector": reflector,
        "level": level,
        "reason": reason,
        "input_ids": list(input_ids),
        "output_ids": list(output_ids),
        "dropped_ids": list(dropped_ids),
        "tokens_before": tokens_before,
        "tokens_after": tokens_after,
        "input_tokens": used.input_tokens + used.cache_write_tokens + used.cache_read_tokens,
        "output_tokens": used.output_tokens,
        "now": now,
    }
    await connection.execute(SQL["insert"], values)


async def get(connection: Connection, reflection_id: str, *, locked: bool = False) -> Reflection:
    """Return a reflection; `locked`: it is locked until the transaction ends. Raises NotFound."""
    async with connection.cursor(row_factory=class_row(Reflection)) as cursor:
        await cursor.execute(SQL["lock" if locked else "get"], {"id": reflection_id})
        found = await cursor.fetchone()
    if found is None:
        raise NotFound(
            f"There is no reflection {reflection_id!r} in this pool.", hint="`esker reflections` lists them."
        )
    return found


async def listed(
    connection: Connection,
    *,
    session_id: str | None = None,
    scope: ReflectionScope | None = None,
    before: str | None = None,
    after: str | None = None,
    limit: int = 100,
) -> list[Reflection]:
    """Return reflections, newest first, that were made before the one `before` and after the one `after`."""
    values = {"session": session_id, "scope": scope, "before": before, "after": after, "limit": limit}
    async with connection.cursor(row_factory=class_row(Reflection)) as cursor:
        await cursor.execute(SQL["list"], values)
        return await cursor.fetchall()


async def was_rejected(connection: Connection, ids: Sequence[str]) -> bool:
    """Whether a reflection of (nearly) these rows of the pool was rejected before."""
    row = await (await connection.execute(SQL["rejected"], {"ids": list(ids)})).fetchone()
    return bool(row and row[0])


async def undo(connection: Connection, reflection_id: str, now: datetime) -> None:
    """Mark a reflection undone. The caller has locked it."""
    await connection.execute(SQL["undo"], {"id": reflection_id, "now": now})
