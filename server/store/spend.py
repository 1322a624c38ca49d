"""Spending of a pool on language models by day, its daily cap, and the calls that are open."""

from dataclasses import asdict, dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Literal
from uuid import UUID

from psycopg.rows import class_row

from esker.server.core.records import Purpose, Spent, TokenUse
from esker.server.db.database import Connection
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/spend.sql")

WhenSpent = Literal["wait", "extractive"]


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call that is about to be made, by the process with the number `holder`.

    `most` is the most that it may use, at `cost_usd`; None: the price is unknown.
    """

    id: UUID
    holder: int
    day: date
    model: str
    purpose: Purpose
    most: TokenUse
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class Allowance:
    """The pool's own cap (None: it has none), what happens when it is reached, and the spending of a day.

    `open_usd` is the most that open calls may cost besides.
    """

    daily_cap_usd: float | None
    when_spent: WhenSpent
    spent_usd: float
    open_usd: float


async def take_turns(connection: Connection) -> None:
    """Wait until no other transaction of the pool decides about a call."""
    await connection.execute(SQL["take_turns"])


async def reserve(connection: Connection, call: OpenCall, now: datetime) -> None:
    """Count a call before it is made."""
    about = {"id": call.id, "holder": call.holder, "day": call.day, "model": call.model, "purpose": call.purpose}
    values = {**about, **asdict(call.most), "cost_usd": call.cost_usd, "now": now}
    await connection.execute(SQL["reserve"], values)


async def withdraw(connection: Connection, call_id: UUID) -> None:
    """Forget a call that was not made."""
    await connection.execute(SQL["withdraw"], {"id": call_id})


async def settle(connection: Connection, call_id: UUID, used: TokenUse, cost_usd: float | None) -> None:
    """Count what a call has used; `cost_usd` is None if its price is not known."""
    await connection.execute(SQL["settle"], {"id": call_id, **asdict(used), "cost_usd": cost_usd})


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
