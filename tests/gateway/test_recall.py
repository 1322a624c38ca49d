"""Recall as a tool that the gateway answers itself: one answer for the client, several requests to the provider."""

import asyncio
import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2
import pytest

from tests.gateway.test_messages import CLAUDE, SESSION, counted, request, sent, stored, text
from tests.support.api import until
from tests.support.messages_api import faults
from tests.support.model_answers import FORMS, Part
from tests.support.upstream import Said, Upstream
from tests.support.waiting import PATIENCE

ON = {"x-esker-recall": "on", "x-esker-client": "mine", "x-esker-session": SESSION}
FIRST: Sequence[Part] = [("text", "I look."), ("recall", "When does the shop deploy?")]
LAST: Sequence[Part] = [("text", "On Fridays."), ("call", "Bash")]
JSON = {"content-type": "application/json"}
GZIP = {"content-encoding": "gzip"}
SCHEMA = {"type": "object", "properties": {}}
BODIES: Mapping[str, dict[str, Any]] = {
    "messages": {"model": "m", "tools": [{"name": "Bash", "input_schema": SCHEMA}]},
    "responses": {"model": "m", "store": False, "tools": [{"type": "function", "name": "Bash", "parameters": SCHEMA}]},
    "chat": {"model": "m", "tools": [{"type": "function", "function": {"name": "Bash", "parameters": SCHEMA}}]},
    "gemini": {"tools": [{"functionDeclarations": [{"name": "Bash"}]}]},
}
HISTORIES: Mapping[str, list[dict[str, Any]]] = {
    "messages": [
        {"role": "user", "content": "When does the shop deploy?"},
        {
            "role": "assistant",
            "content": [
                text("I look."),
                text("On Fridays."),
                {"type": "tool_use", "id": "toolu_2_1", "name": "Bash", "input": {"path": "cart.py"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_2_1", "content": "done"}]},
    ],
    "responses": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "When does the shop deploy?"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "On Fridays."}]},
        {"type": "function_call", "call_id": "call_2_1", "name": "Bash", "arguments": '{"path": "cart.py"}'},
        {"type": "function_call_output", "call_id": "call_2_1", "output": "done"},
    ],
    "chat": [
        {"role": "user", "content": "When does the shop deploy?"},
        {
            "role": "assistant",
            "content": "I look.\n\nOn Fridays.",
            "tool_calls": [
                {
                    "id": "call_2_1",
                    "type": "function",
                    "function": {"name": "Bash", "arguments": '{"path": "cart.py"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_2_1", "content": "done"},
    ],
    "gemini": [
        {"role": "user", "parts": [{"text": "When does the shop deploy?"}]},
        {
            "role": "model",
            "parts": [
                {"text": "I look.\n\nOn Fridays."},
                {"functionCall": {"name": "Bash", "args": {"path": "cart.py"}}, "thoughtSignature": "sig"},
            ],
        },
        {"role": "user", "parts": [{"functionResponse": {"name": "Bash", "response": {"output": "done"}}}]},
    ],
}
PATHS = {
    ("messages", True): "/v1/messages",
    ("messages", False): "/v1/messages",
    ("responses", True): "/v1/responses",
    ("responses", False): "/v1/responses",
    ("chat", True): "/v1/chat/completions",
    ("chat", False): "/v1/chat/completions",
    ("gemini", True): "/v1beta/models/g:streamGenerateContent?alt=sse",
    ("gemini", False): "/v1beta/models/g:generateContent",
}
MEMBERS = {"messages": "messages", "responses": "input", "chat": "messages", "gemini": "contents"}


def answer(name: str, parts: Sequence[Part], number: int, *, is_stream: bool) -> Said:
    """Return a provider's answer."""
    if is_stream:
        return Said(FORMS[name].stream(parts, number))
    return Said([json.dumps(FORMS[name].document(parts, number)).encode()], headers=JSON)


async def ask(agent: httpx2.AsyncClient, name: str, turns: int, *, is_stream: bool) -> httpx2.Response:
    """Send the first items of a history."""
    body = {**BODIES[name], MEMBERS[name]: HISTORIES[name][:turns]}
    return await agent.post(f"/gateway/model{PATHS[name, is_stream]}", json=body, headers=ON)


@pytest.mark.parametrize("is_stream", [True, False])
@pytest.mark.parametrize("name", FORMS)
async def test_a_call_is_answered_by_a_second_request_and_is_in_the_next_one_again(
    agent: httpx2.AsyncClient, provider: Upstream, name: str, is_stream: bool
) -> None:
    await agent.post("/v1/memories", json={"content": "The shop deploys on Fridays.", "kind": "manual"})
    provider.say(answer(name, FIRST, 1, is_stream=is_stream), answer(name, LAST, 2, is_stream=is_stream))
    got = await ask(agent, name, 1, is_stream=is_stream)
    seen = FORMS[name].read_stream(got.content) if is_stream else FORMS[name].read_document(got.json())
    assert "".join(words for kind, words in seen.parts if kind == "text").replace("\n", "") == "I look.On Fridays."
    assert [name for kind, name in seen.parts if kind == "call"] == ["Bash"]
    first, second = (arrived.json for arrived in provider.arrived)
    member = MEMBERS[name]
    assert "recall_memory" in json.dumps(first["tools"])
    assert {**second, member: None} == {**first, member: None}
    told = len(first[member])
    assert second[member][:told] == first[member]
    [*_, result] = second[member]
    assert "The shop deploys on Fridays." in json.dumps(result)
    # The client sends what it saw; call and result come before it, in the same bytes each time.
    provider.say(answer(name, [("text", "Done.")], 3, is_stream=is_stream))
    whole = len(HISTORIES[name])
    await ask(agent, name, whole, is_stream=is_stream)
    await ask(agent, name, whole, is_stream=is_stream)
    third, fourth = provider.arrived[2:]
    assert third.body == fourth.body
    history = third.json[member]
    assert history[:told] == first[member]
    assert "recall_memory" in json.dumps(history[told])
    assert history[told + 1] == result
    assert history[told + 2 :] == HISTORIES[name][1:]
    if name == "messages":
        assert faults(blocks(history)) == []


async def recalled(agent: httpx2.AsyncClient, provider: Upstream, name: str = "messages", query: str = "shop") -> int:
    """Have a model recall that the shop deploys on Fridays; return how many items the client's next request has."""
    await agent.post("/v1/memories", json={"content": "The shop deploys on Fridays.", "kind": "manual"})
    asks: Sequence[Part] = [("text", "I look."), ("recall", query)]
    provider.say(answer(name, asks, 1, is_stream=True), answer(name, LAST, 2, is_stream=True))
    await ask(agent, name, 1, is_stream=True)
    provider.say(answer(name, [("text", "Done.")], 3, is_stream=True))
    return len(HISTORIES[name])


@pytest.mark.parametrize("name", FORMS)
async def test_another_server_puts_a_hidden_call_back_in_the_same_bytes(
    agent: httpx2.AsyncClient, other_agent: httpx2.AsyncClient, provider: Upstream, name: str
) -> None:
    whole = await recalled(agent, provider, name, query="When does the shop\u0000 deploy\ud83d?")
    await ask(agent, name, whole, is_stream=True)
    await ask(other_agent, name, whole, is_stream=True)
    here, there = provider.arrived[2:]
    assert "recall_memory" in json.dumps(here.json[MEMBERS[name]])
    assert there.body == here.body


@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/forget", {"words": ["Fridays"]}), ("/v1/quarantines", {"since": "2000-01-01T00:00:00Z"})],
)
async def test_a_call_is_not_put_back_if_its_result_is_forgotten_or_in_quarantine(
    agent: httpx2.AsyncClient, other_agent: httpx2.AsyncClient, provider: Upstream, path: str, body: dict[str, Any]
) -> None:
    whole = await recalled(agent, provider)
    await ask(other_agent, "messages", whole, is_stream=True)
    (await agent.post(path, json=body)).raise_for_status()
    for each in (agent, other_agent):
        await ask(each, "messages", whole, is_stream=True)
    assert [len(each.json["messages"]) for each in provider.arrived[2:]] == [whole + 2, whole, whole]


async def test_a_call_with_a_secret_is_stored_nowhere_and_not_put_back(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    whole = await recalled(agent, provider, query="Who uses ghp_abcdefghijklmnopqrstuvwxyz0123456789?")
    await ask(agent, "messages", whole, is_stream=True)
    assert len(provider.arrived[2].json["messages"]) == whole


# Its question may say what its result does not show.
@pytest.mark.parametrize("forgotten", ["The shop deploys on Fridays.", "The tent is blue."])
async def test_a_call_is_not_stored_if_something_was_forgotten_before_its_answer_ended(
    agent: httpx2.AsyncClient, provider: Upstream, forgotten: str
) -> None:
    await agent.post("/v1/memories", json={"content": "The shop deploys on Fridays."})
    made = await agent.post("/v1/memories", json={"content": forgotten})
    gate = asyncio.Event()
    last = Said(FORMS["messages"].stream(LAST, 2), gate=gate)
    provider.say(answer("messages", FIRST, 1, is_stream=True), last)
    asking = asyncio.create_task(ask(agent, "messages", 1, is_stream=True))
    async with asyncio.timeout(PATIENCE):
        while len(provider.arrived) < 2:
            await provider.came.wait()
            await asyncio.sleep(0)
    (await agent.delete(f"/v1/memories/{made.json()['id']}")).raise_for_status()
    gate.set()
    await asking
    await ask(agent, "messages", len(HISTORIES["messages"]), is_stream=True)
    assert len(provider.arrived[2].json["messages"]) == len(HISTORIES["messages"])


def blocks(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages whose content is blocks."""
    return [
        {**each, "content": [text(each["content"])] if isinstance(each["content"], str) else each["content"]}
        for each in messages
    ]


async def test_what_the_client_saw_is_kept_and_the_tokens_of_both_requests_are_counted(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    provider.say(
        answer("messages", FIRST, 1, is_stream=True), answer("messages", [("text", "Never.")], 2, is_stream=True)
    )
    await sent(agent, request(("user", "Hi.")), **{"x-esker-recall": "on"})
    messages = await stored(agent, SESSION, 2)
    assert [block["text"] for block in messages[1]["content"]] == ["I look.", "Never."]
    [session] = (await agent.get(f"/v1/sessions?external_id={SESSION}")).json()["sessions"]
    shown = await until(agent, f"/v1/sessions/{session['id']}/memory", lambda memory: memory["usage"])
    assert (shown["usage"]["calls"], shown["usage"]["input_tokens"], shown["usage"]["output_tokens"]) == (1, 200, 20)


async def test_a_client_that_goes_away_ends_the_second_request(agent: httpx2.AsyncClient, provider: Upstream) -> None:
    second = Said(FORMS["messages"].stream(LAST, 2), gate=asyncio.Event())
    provider.say(answer("messages", FIRST, 1, is_stream=True), second)
    body = json.dumps(request(("user", "Hi.")))
    headers = {"content-type": "application/json", **CLAUDE, "x-esker-recall": "on"}
    async with agent.stream("POST", "/gateway/model/v1/messages", content=body, headers=headers) as got:
        arriving = got.aiter_raw()
        await anext(arriving)
        async with asyncio.timeout(PATIENCE):
            while len(provider.arrived) < 2:
                await provider.came.wait()
                await asyncio.sleep(0)
    await asyncio.wait_for(provider.gone.wait(), PATIENCE)


async def test_the_last_event_arrives_though_the_provider_keeps_the_connection_open(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    provider.say(
        *(Said([b"".join(FORMS["messages"].stream(parts, 1)), b"\n"], gate=asyncio.Event()) for parts in (FIRST, LAST))
    )
    body = json.dumps(request(("user", "Hi.")))
    headers = {"content-type": "application/json", **CLAUDE, "x-esker-recall": "on"}
    got = b""
    async with agent.stream("POST", "/gateway/model/v1/messages", content=body, headers=headers) as answer:
        async for chunk in answer.aiter_raw():
            got += chunk
    assert [part for part in FORMS["messages"].read_stream(got).parts if part[0] == "call"] == [("call", "Bash")]


async def test_a_spliced_stream_has_no_length_of_its_first_answer(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    # A provider, or a proxy before it, that has the whole stream at once sends its length.
    provider.say(*(Said([b"".join(FORMS["messages"].stream(parts, 1))]) for parts in (FIRST, LAST)))
    got = await sent(agent, request(("user", "Hi.")), **{"x-esker-recall": "on"})
    assert [part for part in FORMS["messages"].read_stream(got.content).parts if part[0] == "call"] == [
        ("call", "Bash")
    ]


@pytest.mark.parametrize("is_stream", [True, False])
async def test_a_call_in_an_answer_that_is_compressed_unasked_is_answered_as_well(
    agent: httpx2.AsyncClient, provider: Upstream, is_stream: bool
) -> None:
    plain = [answer("messages", parts, number, is_stream=is_stream) for number, parts in ((1, FIRST), (2, LAST))]
    provider.say(
        *(Said([gzip.compress(b"".join(each.chunks))], 200, {**each.headers, **GZIP}) for each in plain),
    )
    got = await sent(agent, request(("user", "Hi."), stream=is_stream), **{"x-esker-recall": "on"})
    read = FORMS["messages"]
    seen = read.read_stream(got.content) if is_stream else read.read_document(got.json())
    assert seen.parts == [("text", "I look."), ("text", "On Fridays."), ("call", "Bash")]
    messages = await stored(agent, SESSION, 2)
    assert [block["text"] for block in messages[1]["content"][:2]] == ["I look.", "On Fridays."]


async def test_an_answer_that_is_cut_off_before_the_client_has_any_of_it_is_an_outage(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    whole = answer("messages", FIRST, 1, is_stream=False)
    provider.say(Said(whole.chunks, headers={**whole.headers, "content-length": "5000"}))
    got = await ask(agent, "messages", 1, is_stream=False)
    assert (got.status_code, "was cut off" in got.json()["detail"]) == (503, True)


async def test_an_answer_whose_second_request_fails_ends_as_a_broken_one(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    refused = Said([b'{"type":"error"}'], 529, JSON)
    provider.say(answer("messages", FIRST, 1, is_stream=True), refused)
    with pytest.raises(httpx2.RemoteProtocolError):
        await sent(agent, request(("user", "Hi.")), **{"x-esker-recall": "on"})
    # The first request was paid for.
    path = f"/v1/sessions?external_id={SESSION}"
    [session] = (await until(agent, path, lambda listed: listed["sessions"]))["sessions"]
    shown = await until(agent, f"/v1/sessions/{session['id']}/memory", lambda memory: memory["usage"])
    assert shown["usage"]["output_tokens"] == 10
    provider.say(answer("messages", FIRST, 1, is_stream=False), refused)
    got = await sent(agent, request(("user", "Hi."), stream=False), **{"x-esker-recall": "on"})
    assert (got.status_code, got.json()) == (529, {"type": "error"})


async def test_a_model_that_asks_again_and_again_is_answered_three_times(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    provider.say(answer("messages", FIRST, 1, is_stream=True))
    got = await sent(agent, request(("user", "Hi.")), **{"x-esker-recall": "on"})
    assert len(provider.arrived) == 4
    seen = FORMS["messages"].read_stream(got.content)
    assert (seen.parts, seen.reason) == ([("text", "I look.")] * 4, "end_turn")


async def test_a_request_that_cannot_have_the_tool_is_counted_once(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    provider.say(answer("messages", [("text", "Hello.")], 1, is_stream=True))
    outcomes = ("not understood", "failed", "with pack", "without pack")
    before = sum([await counted(agent, outcome) for outcome in outcomes])
    twice = json.dumps(request(("user", "Hi."))).replace('"tools"', '"tools": [], "tools"').encode()
    await sent(agent, twice, **{"x-esker-recall": "on"})
    assert provider.arrived[0].body == twice
    assert sum([await counted(agent, outcome) for outcome in outcomes]) == before + 1


@pytest.mark.parametrize("headers", [{}, {"x-esker-recall": "on", "x-esker-mode": "watch"}])
async def test_the_tool_is_in_no_request_that_did_not_ask_for_it_or_may_not_be_changed(
    agent: httpx2.AsyncClient, provider: Upstream, headers: dict[str, str]
) -> None:
    provider.say(answer("messages", [("text", "Hello.")], 1, is_stream=True))
    await sent(agent, request(("user", "Hi.")), **headers)
    assert b"recall_memory" not in provider.arrived[0].body


async def test_half_a_character_in_a_call_breaks_neither_its_answer_nor_later_requests(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    said = FORMS["gemini"].document([("recall", "XX"), ("call", "Bash")], 1)
    provider.say(Said([json.dumps(said).replace("XX", r"deploys \ud83d").encode()], headers=JSON))
    for turns in (1, 3):
        got = await ask(agent, "gemini", turns, is_stream=False)
        assert got.status_code == 200
        assert b"recall_memory" not in got.content
    [_, parts, result, *_] = provider.arrived[1].json["contents"]
    assert parts["parts"][0]["functionCall"]["args"] == {"query": "deploys \ud83d"}
    assert result["parts"][0]["functionResponse"]["name"] == "recall_memory"


async def test_a_stream_that_says_its_length_may_become_longer(agent: httpx2.AsyncClient, provider: Upstream) -> None:
    provider.say(*(Said([b"".join(FORMS["chat"].stream(parts, 1))]) for parts in (FIRST, [("text", "a" * 5_000)])))
    got = await ask(agent, "chat", 1, is_stream=True)
    assert [words for _, words in FORMS["chat"].read_stream(got.content).parts] == ["I look.\n\n" + "a" * 5_000]


async def test_the_model_is_told_why_its_question_is_refused(agent: httpx2.AsyncClient, provider: Upstream) -> None:
    provider.say(
        answer("chat", [("recall", "a" * 5_000)], 1, is_stream=False),
        answer("chat", [("text", "Never.")], 2, is_stream=False),
    )
    await ask(agent, "chat", 1, is_stream=False)
    assert "at most 4,000 characters" in provider.arrived[1].json["messages"][-1]["content"]


async def test_a_conversation_that_goes_on_in_another_protocol_has_no_calls_of_the_first_one(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    provider.say(*(answer("responses", parts, 1, is_stream=False) for parts in (FIRST, [("text", "On Fridays.")])))
    await ask(agent, "responses", 1, is_stream=False)
    said = [{"role": "assistant", "content": words} for words in ("I look.", "On Fridays.")]
    history = [*HISTORIES["chat"][:1], *said, {"role": "user", "content": "And on Mondays?"}]
    provider.say(answer("chat", [("text", "No.")], 2, is_stream=False))
    body = {**BODIES["chat"], "messages": history}
    await agent.post("/gateway/model/v1/chat/completions", json=body, headers=ON)
    assert provider.arrived[2].json["messages"][-4:] == history
