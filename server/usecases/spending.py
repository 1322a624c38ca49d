"""Spending: count every call of a language model before it is made, and refuse calls of a pool at its daily cap."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from uuid import UUID, uuid4

from esker.server.core.clock import tomorrow
from esker.server.core.config.prices import cost
from esker.server.core.errors import InvalidInput, PriceUnknown, SpendCapReached
from esker.server.core.json_input import Json
from esker.server.core.records import EXTRACTIVE, Purpose, Spent, TokenUse
from esker.server.db.database import Connection
from esker.server.store import audit, jobs, pools, spend
from esker.server.store.spend import OpenCall, WhenSpent
from esker.server.usecases.authenticate import require_pool
from esker.server.usecases.parts import Parts

_LOOK_SECONDS = 0.5
MOST_DAYS = 366
MOST_USD = 1_000_000


@dataclass(frozen=True, slots=True)
class PoolMeter:
    """Counts the model calls of one pool, and refuses them once its daily cap is reached."""

    parts: Parts
    pool_id: str
    purpose: Purpose

    async def reserve(self, model: str, most: TokenUse) -> str:
        """Count a call before it is made, at the most that it may use; return its id.

        While open calls may use up the rest of the daily cap, this waits for their end, so that the cap is exceeded
        by no more than one call. Raises SpendCapReached if the pool has reached its cap, and PriceUnknown if there is
        a cap and the price of the model is unknown.
        """
        while (call := await self._reserved(model, most)) is None:  # noqa: ASYNC110 - other processes end calls, too
            await asyncio.sleep(_LOOK_SECONDS)
        return str(call)

    async def _reserved(self, model: str, most: TokenUse) -> UUID | None:
        """Return the id of a call, or None if it has to wait."""
        price = self.parts.settings.price(model)
        async with self.parts.database.tenant(self.pool_id) as connection:
            await spend.take_turns(connection)
            today = await _today(self.parts, connection)
            if model.startswith("cli:"):
                _check_client_limits(self.parts, model, await spend.since(connection, today.day), today)
            _check_cap(model, today, has_price=price is not None)
            if today.cap_usd is not None and today.open_usd and today.spent_usd + today.open_usd >= today.cap_usd:
                return None
            holder, cost_usd = self.parts.holder.number, cost(most, price) if price else None
            call = OpenCall(uuid4(), holder, today.day, model, self.purpose, most, cost_usd)
            await spend.reserve(connection, call, self.parts.clock())
        return call.id

    async def settle(self, call: str, model: str, used: TokenUse | None) -> None:
        """Count what a reserved call has used; None: it was not made."""
        price = self.parts.settings.price(model)
        async with self.parts.database.tenant(self.pool_id) as connection:
            if used is None:
                await spend.withdraw(connection, UUID(call))
            else:
                cost_usd = cost(used, price) if price else None
                await spend.settle(connection, UUID(call), used, cost_usd)
                self.parts.instruments.model_call(self.purpose, used, cost_usd)


def _check_cap(model: str, today: "Today", *, has_price: bool) -> None:
    if today.cap_usd is not None and not has_price:
        raise PriceUnknown(f"This pool has a cap of ${today.cap_usd:.2f} a day, but the price of {model} is unknown.")
    if today.cap_usd is not None and today.spent_usd >= today.cap_usd:
        raise SpendCapReached(
            f"The models of this pool have cost ${today.spent_usd:.4f} today (UTC); the cap is"
            f" ${today.cap_usd:.2f}. Jobs wait until {today.ends_at:%Y-%m-%d %H:%M} UTC."
        )


def _check_client_limits(parts: Parts, model: str, spent: Sequence[Spent], today: "Today") -> None:
    """Raise SpendCapReached if an agent CLI was called as often today as a person allows, or used as many tokens."""
    own = [each for each in spent if each.model == model]
    calls = sum(each.calls for each in own)
    tokens = sum(
        each.input_tokens + each.cache_write_tokens + each.cache_read_tokens + each.output_tokens for each in own
    )
    for used, limit, what, setting in (
        (calls, parts.settings.cli_daily_calls, "calls", "ESKER_CLI_DAILY_CALLS"),
        (tokens, parts.settings.cli_daily_tokens, "tokens", "ESKER_CLI_DAILY_TOKENS"),
    ):
        if used >= limit:
            raise SpendCapReached(
                f"{model} has used {used:,} {what} for this pool today (UTC); {setting} is {limit:,}. Jobs wait until"
                f" {today.ends_at:%Y-%m-%d %H:%M} UTC."
            )


@dataclass(frozen=True, slots=True)
class Today:
    """The spending of a pool today (UTC) and its cap; None means no cap. Open calls may cost `open_usd` besides."""

    day: date
    spent_usd: float
    open_usd: float
    cap_usd: float | None
    when_spent: WhenSpent
    paused: bool
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class SpendReport:
    """The spending of today, and by day, model and purpose."""

    today: Today
    days: list[Spent]


async def report_spending(parts: Parts, pool_id: str, days: int) -> SpendReport:
    """Return the cost of the pool's models in the last `days` days. Raises InvalidInput."""
    if not 1 <= days <= MOST_DAYS:
        raise InvalidInput(f"days must be between 1 and {MOST_DAYS}.")
    async with parts.database.tenant(pool_id) as connection:
        today = await _today(parts, connection)
        return SpendReport(today, await spend.since(connection, today.day - timedelta(days=days - 1)))


async def set_daily_cap(
    parts: Parts, pool: str, *, cap_usd: float | None, without_own: bool, when_spent: WhenSpent | None
) -> Today:
    """Set a pool's daily cap; paused jobs check it again at once.

    None leaves a value as it is; `without_own` removes the pool's own cap. Raises InvalidInput, NotFound.
    """
    if cap_usd is not None and not 0 <= cap_usd <= MOST_USD:
        raise InvalidInput(f"A cap must be between 0 and {MOST_USD:,} dollars a day.")
    found = await require_pool(parts, pool)
    async with parts.database.tenant(found.id) as connection:
        before = await spend.allowance(connection, parts.clock().astimezone(UTC).date())
        cap = None if without_own else before.daily_cap_usd if cap_usd is None else cap_usd
        await spend.set_cap(connection, cap, when_spent or before.when_spent)
        await jobs.resume_paused(connection, parts.clock())
        detail: dict[str, Json] = {"daily_cap_usd": cap, "when_spent": when_spent}
        await audit.insert(connection, "operator", "pool.set", found.id, detail, parts.clock())
        return await _today(parts, connection)


async def resume_paused_jobs(parts: Parts) -> None:
    """Have the paused jobs of all pools check their cap again: the cap or a price may have changed."""
    for pool_id in await pools.ids(parts.database):
        async with parts.database.tenant(pool_id) as connection:
            await jobs.resume_paused(connection, parts.clock())


async def falls_back(parts: Parts, pool_id: str) -> bool:
    """Return whether a pool uses the extractive observer and reflector once its cap is reached."""
    async with parts.database.tenant(pool_id) as connection:
        return (await _today(parts, connection)).when_spent == "extractive"


async def _today(parts: Parts, connection: Connection) -> Today:
    now = parts.clock()
    day = now.astimezone(UTC).date()
    allowed = await spend.allowance(connection, day)
    own = allowed.daily_cap_usd
    cap = parts.settings.daily_cap_usd if own is None else own
    models = any(role and role.name != EXTRACTIVE for role in (parts.observer, parts.reflector))
    paused = models and cap is not None and allowed.spent_usd >= cap
    return Today(day, allowed.spent_usd, allowed.open_usd, cap, allowed.when_spent, paused, tomorrow(now))
