"""Spending of a pool on language models by day, and its daily cap."""

from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Literal

from psycopg.rows import class_row

from esker.server.core.records import Purpose, Spent, TokenUse
from esker.server.db.database import Connection
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/spend.sql")

WhenSpent = Literal["wait", "extractive"]


@dataclass(frozen=True, slots=True)
class Allowance:
    """The pool's own cap (None: it has none), what happens when it is reached, and the spending of a day."""

    daily_cap_usd: float | None
    when_spent: WhenSpent
    spent_usd: float


async def add(
    connection: Connection, day: date, model: str, purpose: Purpose, used: TokenUse, cost_usd: float | None
) -> None:
    """Count one call of a model; `cost_usd` is None if its price is not known."""
    values = {"day": day, "model": model, "purpose": purpose, "cost_usd": cost_usd}
    await connection.execute(SQL["add"], {**asdict(used), **values})


async def allowance(connection: Connection, day: date) -> Allowance:
    """Return what the pool may spend and has spent on a day."""
    async with connection.cursor(row_factory=class_row(Allowance)) as cursor:
        await cursor.execute(SQL["allowance"], {"day": day})
        found = await cursor.fetchone()
    assert found is not None  # the pool of a transaction exists
    return found


async def since(connection: Connection, day: date) -> list[Spent]:
    """Return the spending from `day` on, newest first."""
    async with connection.cursor(row_factory=class_row(Spent)) as cursor:
        await cursor.execute(SQL["since"], {"day": day})
        return await cursor.fetchall()


async def set_cap(connection: Connection, cap: float | None, when_spent: WhenSpent) -> None:
    """Set the pool's own cap; None: the server's setting applies."""
    await connection.execute(SQL["set_cap"], {"cap": cap, "when_spent": when_spent})
