"""Leases of all pools whose holders are gone."""

from collections.abc import Collection
from datetime import datetime
from pathlib import Path

from esker.server.db.database import Database
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/work.sql")


async def abandoned_holders(database: Database, now: datetime) -> set[int]:
    """Return the numbers of the holders of leases whose connection has ended."""
    return {int(row["holder"]) for row in await database.ask(SQL["abandoned_holders"], {"now": now})}


async def end(database: Database, holders: Collection[int], now: datetime) -> int:
    """End the leases of these holders, so that others claim the work; return how many."""
    [row] = await database.ask(SQL["end_leases"], {"holders": list(holders), "now": now})
    return int(row["ended"])


async def settle_calls(database: Database, holders: Collection[int]) -> int:
    """Count the open calls of these holders at the most that they may have used; return how many."""
    [row] = await database.ask(SQL["settle_calls"], {"holders": list(holders)})
    return int(row["settled"])
