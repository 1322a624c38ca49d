"""The memory for large bodies: bounded, in order of arrival, and free again after each."""

import asyncio

import pytest

from esker.server.core.errors import TooManyRequests
from esker.server.rest.body_budget import BodyBudget


async def test_bodies_together_take_no_more_than_the_budget_in_order_of_arrival() -> None:
    budget, order = BodyBudget(100), list[int]()

    async def held(number: int, size: int) -> None:
        await budget.take(size)
        assert budget.held <= 100
        order.append(number)
        await asyncio.sleep(0)
        budget.give_back(size)

    await asyncio.gather(*(held(number, size) for number, size in enumerate((60, 50, 30, 100, 10, 40))))
    assert order == [0, 1, 2, 3, 4, 5]
    assert budget.held == 0


async def test_a_body_that_waits_too_long_is_refused_and_holds_up_no_other() -> None:
    budget = BodyBudget(100, wait_seconds=0.0)
    await budget.take(60)
    with pytest.raises(TooManyRequests) as refused:
        await budget.take(50)
    assert refused.value.seconds > 0
    await budget.take(40)
    assert budget.held == 100


async def test_a_body_whose_client_leaves_while_it_waits_gives_its_place_to_the_next() -> None:
    budget = BodyBudget(100)
    await budget.take(60)
    waiting = [asyncio.create_task(budget.take(size)) for size in (50, 40)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await waiting[1]
    assert budget.held == 100


async def test_a_body_larger_than_the_budget_gets_its_place_alone() -> None:
    budget = BodyBudget(100)
    await budget.take(500)
    budget.give_back(500)
    await budget.take(100)
    assert budget.held == 100
