"""A run: the phases, the agents in each, and what is counted at the end."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import httpx2
from rich.progress import Progress

from evals.load.agents import Agent
from evals.load.outcomes import Outcomes
from evals.load.watching import Watch

_TIMEOUT_SECONDS = 60.0
_LAG_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Plan:
    """The phases of a run: `agents` work for `seconds`, then `spike` times as many for `spike_seconds`, then as before.

    `importing`, if given, is awaited while the agents work on.
    """

    agents: int
    seconds: float
    seed: int
    pause_seconds: float
    spike: int = 0
    spike_seconds: float = 20.0
    after_seconds: float = 30.0
    importing: Callable[[], Awaitable[None]] | None = None


@dataclass(slots=True)
class Ran:
    """The observations of a run. `driver_lag` are the seconds by which this program itself was late."""

    outcomes: Outcomes
    driver_lag: list[float] = field(default_factory=list[float])
    phases: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    acknowledged: int = 0
    stored: int = 0
    lost: int = 0
    twice: int = 0


async def run_load(plan: Plan, url: str, key: str | None, watch: Watch, shown: Progress) -> Ran:
    """Run the agents against a server, and check at the end that it has every acknowledged message once."""
    ran = Ran(Outcomes())
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=_TIMEOUT_SECONDS, limits=limits) as client:
        lagging = asyncio.create_task(_note_lag(ran.driver_lag))
        stop = asyncio.Event()
        agents = [_agent(plan, f"agent-{n}", client, ran.outcomes, watch.began) for n in range(plan.agents)]
        async with asyncio.TaskGroup() as working:
            for agent in agents:
                working.create_task(agent.work(stop))
            await _phase("steady", asyncio.sleep(plan.seconds), plan.seconds, ran, watch, shown)
            if plan.spike > 1:
                spiking = _spike(plan, client, ran, watch, agents)
                await _phase("spike", spiking, plan.spike_seconds, ran, watch, shown)
                await _phase("after", asyncio.sleep(plan.after_seconds), plan.after_seconds, ran, watch, shown)
            if plan.importing:
                await _phase("import", plan.importing(), None, ran, watch, shown)
            stop.set()
        lagging.cancel()
        await _check(client, agents, ran)
    return ran


async def _phase(
    name: str, work: Awaitable[None], seconds: float | None, ran: Ran, watch: Watch, shown: Progress
) -> None:
    task = shown.add_task(f"{name}", total=seconds)
    ran.outcomes.phase = watch.phase = name
    start = time.perf_counter() - watch.began
    working = asyncio.ensure_future(work)
    while not working.done():
        await asyncio.wait([working], timeout=1.0)
        shown.update(task, completed=int(time.perf_counter() - watch.began - start))
    await working
    ran.phases[name] = (start, time.perf_counter() - watch.began)


async def _spike(plan: Plan, client: httpx2.AsyncClient, ran: Ran, watch: Watch, agents: list[Agent]) -> None:
    stop = asyncio.Event()
    more = range(plan.agents, plan.agents * plan.spike)
    added = [_agent(plan, f"agent-{n}", client, ran.outcomes, watch.began) for n in more]
    agents.extend(added)
    async with asyncio.TaskGroup() as working:
        for agent in added:
            working.create_task(agent.work(stop))
        await asyncio.sleep(plan.spike_seconds)
        stop.set()


def _agent(plan: Plan, name: str, client: httpx2.AsyncClient, outcomes: Outcomes, began: float) -> Agent:
    chance = random.Random(f"{plan.seed} {name}")  # noqa: S311 - the same requests each time
    return Agent(name, client, outcomes, began, plan.pause_seconds, chance)


async def _note_lag(lags: list[float]) -> None:
    while True:
        start = time.perf_counter()
        await asyncio.sleep(_LAG_SECONDS)
        lags.append(time.perf_counter() - start - _LAG_SECONDS)


async def _check(client: httpx2.AsyncClient, agents: list[Agent], ran: Ran) -> None:
    """Compare what was acknowledged with what is stored; a message that was not acknowledged may be either."""
    for agent in agents:
        if agent.session is None:
            continue
        answer = await client.get(f"/v1/sessions/{agent.session}")
        answer.raise_for_status()
        stored = answer.json()["messages"]
        ran.acknowledged += agent.acknowledged
        ran.stored += stored
        ran.lost += max(0, agent.acknowledged - stored)
        ran.twice += max(0, stored - agent.sent)
