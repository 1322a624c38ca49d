"""Pools: every tenant of the database."""

from pathlib import Path

from esker.server.core.records import ListedPool, Pool
from esker.server.db.database import Database
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/pools.sql")


async def create(database: Database, name: str) -> Pool | None:
    """Make a pool and return it, or None if one with this name exists."""
    rows = await database.ask(SQL["create"], {"name": name})
    if not rows:
        return None
    await database.ask(SQL["notify"])
    return Pool(**rows[0])


async def by_name(database: Database, name: str) -> Pool | None:
    """Return the pool called `name`, or None."""
    rows = await database.ask(SQL["by_name"], {"name": name})
    return Pool(**rows[0]) if rows else None


async def listed(database: Database) -> list[ListedPool]:
    """Return all pools by name."""
    return [ListedPool(**row) for row in await database.ask(SQL["list"])]


async def ids(database: Database) -> list[str]:
    """Return the ids of all pools."""
    return [str(row["id"]) for row in await database.ask(SQL["ids"])]
