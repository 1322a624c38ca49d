"""Tokens of the gateway's calls, as the provider counted them, beside an estimate of those of the raw history."""

import asyncio
from typing import Any

import httpx2

from tests.gateway.test_manage import MANAGED, answered, history, kept
from tests.gateway.test_messages import SESSION, request, sent, text
from tests.support.api import until
from tests.support.processes import esker
from tests.support.upstream import Said, Upstream, messages_stream

LONGER = [*history(20), ("user", "Sum up."), ("assistant", [text("Part 20 is done.")]), ("user", "And now?")]


async def savings(agent: httpx2.AsyncClient, calls: int) -> dict[str, Any]:
    """Return the savings, as soon as so many calls are known."""
    return await until(agent, "/v1/savings", lambda found: sum(each["calls"] for each in found["clients"]) == calls)


def say(provider: Upstream, number: int, **usage: int) -> None:
    """Have the provider answer with a usage."""
    provider.say(Said(messages_stream(text(f"Part {number} is done."), number=number, **usage)))


async def test_in_watch_everything_is_sent_and_nothing_saved_and_in_off_nothing_is_shown(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    say(provider, 1, input_tokens=900, cache_creation_input_tokens=80, cache_read_input_tokens=20)
    await sent(agent, request(("user", "Hi.")), **{"x-esker-mode": "watch"})
    say(provider, 2)
    await sent(agent, request(("user", "Hi.")), **{"x-esker-mode": "off", "x-claude-code-session-id": "another"})
    [session] = (await savings(agent, 1))["sessions"]
    assert (session["external_id"], session["gateway_calls"]) == (SESSION, 1)
    assert (session["sent_tokens"], session["cache_read_tokens"], session["raw_tokens"]) == (1_000, 20, 1_000)
    assert (session["left_out_tokens"], session["saved_usd"]) == (0, 0)
    shown = await asyncio.to_thread(esker, "sessions", session["session_id"], ESKER_URL=str(agent.base_url))
    assert "nothing was saved" in shown.stdout


async def test_what_is_left_out_is_saved_less_the_pack_by_client_and_session(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    await kept(agent, provider, 20)
    provider.say(answered(21))
    await sent(agent, request(*LONGER), **MANAGED)
    found = await savings(agent, 2)
    [session], [client] = found["sessions"], found["clients"]
    assert (client["client"], client["sessions"], client["sent_tokens"]) == ("claude-code", 1, 200)
    # The turns that were left out have some 5,000 tokens, those of the pack are far fewer.
    sent_first, arrived = provider.arrived[0].json["messages"], provider.arrived[1].json["messages"]
    omitted = len(str(sent_first)) + len(str(LONGER[-2:])) - len(str(arrived))
    assert omitted / 6 < session["left_out_tokens"] < omitted / 3
    assert session["raw_tokens"] == session["left_out_tokens"] + session["sent_tokens"]
    assert session["saved_usd"] > 0
    shown = (await asyncio.to_thread(esker, "savings", ESKER_URL=str(agent.base_url))).stdout
    assert f"{session['left_out_tokens']:,}" in shown
    assert "estimate" in shown
    page = (await agent.get("/")).text
    assert f"{session['left_out_tokens']:,}" in page
    metrics = (await agent.get("/metrics")).text
    assert 'esker_gateway_cost_usd_total{client="claude-code",history="raw"}' in metrics


async def test_a_program_that_names_itself_makes_no_series_of_its_own(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    say(provider, 1)
    await sent(agent, request(("user", "Hi.")), **{"x-esker-client": "mine-7"})
    [client] = (await savings(agent, 1))["clients"]
    assert client["client"] == "mine-7"
    metrics = (await agent.get("/metrics")).text
    assert 'esker_gateway_raw_tokens_total{client="other"}' in metrics
    assert "mine-7" not in metrics
