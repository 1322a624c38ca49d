"""The mode `manage`: observed turns of a long history are left out, and the prompt stays the same between moves."""

from typing import Any

import httpx2

from tests.gateway.test_messages import SESSION, TOOLS, request, sent, stored, text
from tests.support.api import observed, until
from tests.support.messages_api import faults
from tests.support.upstream import Said, Upstream, messages_stream

MANAGED = {"x-esker-mode": "manage"}
WORDS = "We looked at the cart, at its items and at how the price is computed when it is shown. " * 12


def history(rounds: int) -> list[tuple[str, Any]]:
    """Return rounds of a prompt, a call with its result, and an answer."""
    found: list[tuple[str, Any]] = []
    for number in range(rounds):
        call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "ls"}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": WORDS}
        prompt = "We decided to use pnpm for the shop. Build it." if number == 0 else f"Go on with part {number}."
        found += [
            ("user", [text(prompt)]),
            ("assistant", [text(f"Step {number}."), call]),
            ("user", [result]),
            ("assistant", [text(f"Part {number} is done.")]),
        ]
    return found


def answered(number: int) -> Said:
    """Return the provider's answer to the last prompt of a history of so many rounds."""
    return Said(messages_stream(text(f"Part {number} is done."), number=number))


async def kept(agent: httpx2.AsyncClient, provider: Upstream, rounds: int) -> str:
    """Send a history through the gateway, observe all of it, and return the id of its session."""
    provider.say(answered(rounds))
    await sent(agent, request(*history(rounds), ("user", "Sum up.")), **MANAGED)
    await stored(agent, SESSION, 4 * rounds + 2)
    [session] = (await agent.get(f"/v1/sessions?external_id={SESSION}")).json()["sessions"]
    await observed(agent, session["id"])
    return session["id"]


async def test_observed_turns_are_left_out_and_the_prompt_stays_the_same_until_the_next_move(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    session = await kept(agent, provider, 20)
    assert len(provider.arrived[0].json["messages"]) == 81  # nothing was observed by then
    longer = [*history(20), ("user", "Sum up."), ("assistant", [text("Part 20 is done.")]), ("user", "And now?")]
    provider.say(answered(21))
    await sent(agent, request(*longer), **MANAGED)
    first = provider.arrived[1].json
    assert first["messages"][0]["content"] == [text("We decided to use pnpm for the shop. Build it.")]
    assert 13 <= len(first["messages"]) < 40
    assert first["messages"][-1]["content"] == "And now?"
    pack = first["system"][1]["text"]
    assert "pnpm" in pack
    assert "This conversation began before the messages below" in pack
    assert first["tools"] == TOOLS
    # The head and the tail that is left have the roles and the pairs that the API asks for.
    assert [fault for fault in faults(blocks(first["messages"])) if "alternate" not in fault] == []
    provider.say(answered(22))
    # One more round: the same prompt, and the messages so far are its beginning.
    await sent(agent, request(*longer, ("assistant", [text("Part 21 is done.")]), ("user", "More.")), **MANAGED)
    second = provider.arrived[2].json
    assert second["system"] == first["system"]
    assert second["messages"][: len(first["messages"])] == first["messages"]
    shown = await until(agent, f"/v1/sessions/{session}/memory", lambda memory: memory["usage"]["calls"] == 3)
    assert [version["reason"] for version in shown["pack_versions"]] == ["evicted", "initial"]


async def test_every_turn_is_kept_though_it_is_left_out_of_later_requests(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    session = await kept(agent, provider, 20)
    provider.say(answered(21))
    longer = [*history(20), ("user", "Sum up."), ("assistant", [text("Part 20 is done.")]), ("user", "And now?")]
    await sent(agent, request(*longer), **MANAGED)
    messages = await stored(agent, SESSION, 84)
    assert [each["text"] for each in messages[-2:]] == ["And now?", "Part 21 is done."]
    assert (await agent.get(f"/v1/sessions/{session}")).json()["messages"] == 84


async def test_a_short_history_is_sent_whole(agent: httpx2.AsyncClient, provider: Upstream) -> None:
    await kept(agent, provider, 3)
    longer = request(*history(3), ("user", "Sum up."), ("assistant", [text("Part 3 is done.")]), ("user", "And now?"))
    provider.say(answered(4))
    await sent(agent, longer, **MANAGED)
    assert provider.arrived[1].json["messages"] == longer["messages"]


async def test_a_history_that_the_client_has_compacted_is_sent_as_it_is(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    await kept(agent, provider, 20)
    longer = [*history(20), ("user", "Sum up."), ("assistant", [text("Part 20 is done.")]), ("user", "And now?")]
    provider.say(answered(21))
    await sent(agent, request(*longer), **MANAGED)
    compacted = request(("user", "What we did so far: the shop is built."), *longer[-2:])
    await sent(agent, compacted, **MANAGED)
    assert provider.arrived[2].json["messages"] == compacted["messages"]


async def test_a_compacted_history_that_has_grown_long_is_stored_once_and_cut_again(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    session = await kept(agent, provider, 20)
    # The client has kept its latest answer, as Claude Code does, and goes on.
    grown = [("assistant", [text("Part 20 is done.")]), *history(40)[80:]]
    provider.say(answered(40))
    await sent(agent, request(*grown, ("user", "Sum it up again.")), **MANAGED)
    shown = await until(agent, f"/v1/sessions/{session}", lambda found: found["messages"] >= 164)
    assert shown["messages"] == 164
    await observed(agent, session)
    provider.say(answered(41))
    again = [("user", "Sum it up again."), ("assistant", [text("Part 40 is done.")]), ("user", "And now?")]
    await sent(agent, request(*grown, *again), **MANAGED)
    assert len(provider.arrived[-1].json["messages"]) < 40


def blocks(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages whose content is blocks."""
    return [
        {**each, "content": [text(each["content"])] if isinstance(each["content"], str) else each["content"]}
        for each in messages
    ]
