"""Calls are counted before they are made, so a killed server has spent no more than was counted."""

import asyncio
from dataclasses import replace

import pytest

from esker.server.core.config.settings import Settings
from esker.server.core.errors import SpendCapReached
from esker.server.core.records import Principal, Spent, TokenUse
from esker.server.db.holder import Holder
from esker.server.usecases.end_leases import MissingHolders, end_abandoned_leases
from esker.server.usecases.parts import Parts
from esker.server.usecases.spending import PoolMeter, report_spending

MODEL = "claude-haiku-5-5"
MOST = TokenUse(1_000_000, 1_000_000)
A_DOLLAR = TokenUse(0, 2_000_000)


@pytest.fixture
def capped(parts: Parts) -> Parts:
    """Parts of a server with a cap of a dollar a day; a call may cost 60 cents."""
    return replace(parts, settings=Settings(daily_cap_usd=1.0))


def meter_of(parts: Parts, who: Principal) -> PoolMeter:
    """Return the meter of a new process."""
    return PoolMeter(replace(parts, holder=Holder()), who.pool_id, "observe")


async def spent(parts: Parts, who: Principal) -> list[Spent]:
    """Return what was spent today."""
    return (await report_spending(parts, who.pool_id, 1)).days


async def kill(parts: Parts) -> None:
    """Have others notice that the processes of all open calls are gone."""
    missing = MissingHolders()
    for moment in (0.0, 5.0):
        await end_abandoned_leases(parts, missing, moment)


async def test_a_call_is_counted_from_its_begin_on_and_corrected_at_its_end(parts: Parts, who: Principal) -> None:
    meter = meter_of(parts, who)
    call = await meter.reserve(MODEL, MOST)
    [during] = await spent(parts, who)
    assert (during.calls, during.input_tokens, during.cost_usd) == (1, 1_000_000, pytest.approx(0.6))
    await meter.settle(call, MODEL, TokenUse(500_000, 0))
    [after] = await spent(parts, who)
    assert (after.calls, after.input_tokens, after.output_tokens) == (1, 500_000, 0)
    assert after.cost_usd == pytest.approx(0.05)


async def test_a_crash_loop_cannot_pass_the_cap(capped: Parts, who: Principal) -> None:
    for _ in range(2):
        await meter_of(capped, who).reserve(MODEL, MOST)
        await kill(capped)
    with pytest.raises(SpendCapReached):
        await meter_of(capped, who).reserve(MODEL, MOST)
    [counted] = await spent(capped, who)
    assert (counted.calls, counted.cost_usd) == (2, pytest.approx(1.2))


async def test_a_call_that_was_counted_as_cut_off_is_not_counted_again(parts: Parts, who: Principal) -> None:
    meter = meter_of(parts, who)
    call = await meter.reserve(MODEL, MOST)
    await kill(parts)
    await meter.settle(call, MODEL, A_DOLLAR)
    [counted] = await spent(parts, who)
    assert (counted.calls, counted.cost_usd) == (1, pytest.approx(0.6))


async def test_a_call_that_was_not_made_is_not_counted(parts: Parts, who: Principal) -> None:
    meter = meter_of(parts, who)
    await meter.settle(await meter.reserve(MODEL, MOST), MODEL, None)
    assert await spent(parts, who) == []


async def test_a_call_waits_while_open_ones_may_use_up_the_cap(capped: Parts, who: Principal) -> None:
    first, second = [await meter_of(capped, who).reserve(MODEL, MOST) for _ in range(2)]
    third = asyncio.create_task(meter_of(capped, who).reserve(MODEL, MOST))
    done, _ = await asyncio.wait([third], timeout=0.6)
    assert not done
    for call in (first, second):
        await meter_of(capped, who).settle(call, MODEL, TokenUse())
    assert await third
    [counted] = await spent(capped, who)
    assert counted.calls == 3


async def test_a_call_waits_no_longer_than_until_the_cap_is_reached(capped: Parts, who: Principal) -> None:
    meter = meter_of(capped, who)
    calls = [await meter.reserve(MODEL, MOST) for _ in range(2)]
    waiting = asyncio.create_task(meter.reserve(MODEL, MOST))
    await meter.settle(calls[0], MODEL, A_DOLLAR)
    with pytest.raises(SpendCapReached):
        await waiting
