"""The keys of pools."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from psycopg.rows import class_row

from esker.server.core.errors import Conflict
from esker.server.core.records import ListedKey, Pool
from esker.server.db.database import Connection, Database
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/keys.sql")


@dataclass(frozen=True, slots=True)
class KeyAccess:
    """The pool, the scopes and the binding of a valid key."""

    pool_id: str
    pool_name: str
    key_id: str
    scopes: list[str]
    last_used_on: date | None
    client: str | None
    project: str | None


async def find(database: Database, key_hash: bytes, now: datetime) -> KeyAccess | None:
    """Return the key with this SHA-256, or None for an unknown, revoked or expired one."""
    rows = await database.ask(SQL["find"], {"hash": key_hash, "now": now})
    return KeyAccess(**rows[0]) if rows else None


async def keyless(database: Database, pool: str) -> tuple[Pool | None, bool]:
    """Return the pool of this name, and whether keys are required on this database."""
    [row] = await database.ask(SQL["keyless"], {"name": pool})
    return Pool(row["id"], row["name"]) if row["id"] else None, row["required"]


async def any_required(database: Database) -> bool:
    """Whether keys are required on this database."""
    return bool((await database.ask(SQL["any_required"]))[0]["required"])


async def insert(
    connection: Connection,
    *,
    key_id: str,
    name: str,
    prefix: str,
    key_hash: bytes,
    scopes: Sequence[str],
    client: str | None,
    project: str | None,
    now: datetime,
    expires: datetime | None,
) -> None:
    """Store a new key, which requires keys from now on. Raises Conflict if a valid key of the pool has this name."""
    values = {"id": key_id, "name": name, "prefix": prefix, "hash": key_hash, "scopes": list(scopes)}
    values |= {"client": client, "project": project, "now": now, "expires": expires}
    if not (await connection.execute(SQL["insert"], values)).rowcount:
        raise Conflict(f"This pool already has a key {name!r}.", hint="Revoke it first, or choose another name.")


async def note_use(connection: Connection, key_id: str, now: datetime) -> None:
    """Record the day on which a key was used."""
    await connection.execute(SQL["note_use"], {"id": key_id, "day": now.date()})


async def listed(connection: Connection) -> list[ListedKey]:
    """Return the keys of the pool."""
    async with connection.cursor(row_factory=class_row(ListedKey)) as cursor:
        await cursor.execute(SQL["list"])
        return await cursor.fetchall()


async def revoke(connection: Connection, key: str, now: datetime) -> list[str]:
    """Revoke the keys with this id or name and return their ids."""
    cursor = await connection.execute(SQL["revoke"], {"key": key, "now": now})
    return [str(row[0]) for row in await cursor.fetchall()]
