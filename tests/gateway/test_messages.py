"""The gateway with the Messages API: bytes as they came, the pack in its place, the transcript kept once."""

import asyncio
import json
import logging
from typing import Any

import httpx2
import pytest

from esker.server.gateway import placing
from esker.server.gateway.identity import identified
from esker.server.gateway.records import Turn
from tests.support.api import until
from tests.support.kept_servers import KeptServer
from tests.support.upstream import Said, Upstream, messages_stream
from tests.support.waiting import PATIENCE, eventually

SESSION = "0b6f1c1e-0000-4000-8000-000000000001"
CLAUDE = {
    "user-agent": "claude-cli/2.1.332 (external, sdk-cli)",
    "x-claude-code-session-id": SESSION,
    "x-api-key": "sk-of-the-user",
    "anthropic-version": "2023-06-01",
}
TOOLS = [{"name": "Bash", "description": "Run a command", "input_schema": {"type": "object"}}]
IDENTITY = {"type": "text", "text": "You are a careful engineer.", "cache_control": {"type": "ephemeral"}}
RULES = {"type": "text", "text": "Rules of the house.", "cache_control": {"type": "ephemeral"}}

_WAITING = """
    SELECT FROM pg_locks
    WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


def text(words: str) -> dict[str, Any]:
    """Return a text block."""
    return {"type": "text", "text": words}


def request(*turns: tuple[str, Any], **more: Any) -> dict[str, Any]:
    """Return a request with tools."""
    messages = [{"role": role, "content": content} for role, content in turns]
    return {"model": "claude-sonnet-5", "max_tokens": 64, "system": [IDENTITY, RULES], "tools": TOOLS} | {
        "messages": messages,
        "stream": True,
        **more,
    }


async def sent(agent: httpx2.AsyncClient, body: Any, **headers: str) -> httpx2.Response:
    """Send a request through the gateway."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    own = {"content-type": "application/json", **CLAUDE, **headers}
    return await agent.post("/gateway/model/v1/messages?beta=true", content=content, headers=own)


async def stored(agent: httpx2.AsyncClient, session: str, count: int) -> list[dict[str, Any]]:
    """Return the messages of a session of Claude Code, as soon as there are so many."""
    path = f"/v1/sessions?external_id={session}"
    [found] = (await until(agent, path, lambda listed: listed["sessions"]))["sessions"]
    shown = await until(agent, f"/v1/sessions/{found['id']}/messages", lambda page: len(page["messages"]) >= count)
    return shown["messages"]


async def test_a_stream_arrives_byte_for_byte_as_the_provider_sends_it(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    gate = asyncio.Event()
    chunks = messages_stream(text("Hello."))
    provider.say(Said(chunks, gate=gate))
    body = json.dumps(request(("user", "Hi."))).encode()
    arrived: list[bytes] = []
    own = {"content-type": "application/json", **CLAUDE}
    async with agent.stream("POST", "/gateway/model/v1/messages", content=body, headers=own) as answer:
        async for chunk in answer.aiter_raw():
            arrived.append(chunk)
            # The rest is sent only after the beginning has arrived here.
            gate.set()
    assert arrived[0] == chunks[0]
    assert b"".join(arrived) == b"".join(chunks)


async def test_the_users_key_goes_to_the_provider_and_nothing_of_esker_does(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    provider.say(Said(messages_stream(text("Hello."))))
    await sent(agent, request(("user", "Hi.")), **{"x-esker-project": "acme/shop", "x-esker-client": "mine"})
    [arrived] = provider.arrived
    names = [name for name, _ in arrived.headers]
    assert dict(arrived.headers)["x-api-key"] == "sk-of-the-user"
    assert arrived.path == "/v1/messages?beta=true"
    assert not [name for name in names if name.startswith("x-esker")]
    assert len(names) == len(set(names))
    assert names.count("user-agent") == 1


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[1, 2]", b'{"messages": 7}', b'{"messages": [{"role": 1}]}', b"\xff\xfe"]
)
async def test_a_request_that_is_not_understood_is_passed_on_as_it_came(
    agent: httpx2.AsyncClient, provider: Upstream, body: bytes
) -> None:
    provider.say(Said([b'{"type":"error"}'], status=400, headers={"content-type": "application/json"}))
    answer = await sent(agent, body)
    assert (answer.status_code, answer.content) == (400, b'{"type":"error"}')
    assert provider.arrived[0].body == body


async def test_the_pack_stands_before_the_last_breakpoint_of_the_system_prompt_and_stays_the_same(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    await agent.post("/v1/memories", json={"content": "The shop deploys on Fridays.", "kind": "manual"})
    provider.say(Said(messages_stream(text("Hello."))))
    original = json.dumps(request(("user", "Hi."))).encode()
    await sent(agent, original)
    await agent.post("/v1/memories", json={"content": "The shop closes at noon.", "kind": "manual"})
    await sent(agent, request(("user", "Hi."), ("assistant", [text("Hello.")]), ("user", "And now?")))
    first, second = (arrived.json["system"] for arrived in provider.arrived)
    assert [block["text"] for block in (first[0], first[2])] == [IDENTITY["text"], RULES["text"]]
    assert "deploys on Fridays" in first[1]["text"]
    assert "cache_control" not in first[1]
    assert first == second
    # Every other byte is as the client wrote it.
    sent_text, pack = provider.arrived[0].body.decode(), json.dumps(first[1], ensure_ascii=False)
    assert sent_text.replace(f"{pack},", "", 1).encode() == original


async def test_a_conversation_is_kept_once_however_often_it_is_sent(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "cart.py"}
    provider.say(Said(messages_stream(text("I look."), call)), Said(messages_stream(text("One file."), number=2)))
    asked = [text("<system-reminder>\nbe brief\n</system-reminder>"), text("Which files are there?")]
    await sent(agent, request(("user", asked)))
    marked = {**result, "cache_control": {"type": "ephemeral"}}
    history = [("user", asked), ("assistant", [text("I look."), call]), ("user", [marked])]
    await sent(agent, request(*history))
    await sent(agent, request(*history))  # a retry
    unmarked = [*history[:2], ("user", [result]), ("assistant", [text("One file.")]), ("user", "Thanks.")]
    await sent(agent, request(*unmarked))
    messages = await stored(agent, SESSION, 6)
    assert [(each["role"], [block["type"] for block in each["content"]]) for each in messages] == [
        ("user", ["text"]),
        ("assistant", ["text", "tool_use"]),
        ("user", ["tool_result"]),
        ("assistant", ["text"]),
        ("user", ["text"]),
        ("assistant", ["text"]),
    ]
    assert messages[1]["content"][1]["input"] == {"command": "ls"}


async def test_usage_is_recorded_as_the_provider_reports_it(agent: httpx2.AsyncClient, provider: Upstream) -> None:
    chunks = messages_stream(text("Hello."), cache_read_input_tokens=7, cache_creation_input_tokens=5)
    provider.say(Said(chunks))
    await sent(agent, request(("user", "Hi.")))
    await stored(agent, SESSION, 2)
    [session] = (await agent.get(f"/v1/sessions?external_id={SESSION}")).json()["sessions"]
    shown = await until(agent, f"/v1/sessions/{session['id']}/memory", lambda memory: memory["usage"])
    used = shown["usage"]
    assert used["calls"] == 1
    assert (used["input_tokens"], used["output_tokens"]) == (100, 20)
    assert (used["cache_read_tokens"], used["cache_write_tokens"]) == (7, 5)


async def test_a_title_request_is_neither_kept_nor_given_the_pack(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    provider.say(Said(messages_stream(text("A title"))))
    body = json.dumps(
        {"model": "m", "messages": [{"role": "user", "content": "Make a title"}], "stream": True}
    ).encode()
    await sent(agent, body)
    assert provider.arrived[0].body == body
    await sent(agent, request(("user", "Hi.")))
    assert [each["text"] for each in await stored(agent, SESSION, 2)] == ["Hi.", "A title"]


async def test_a_compaction_adds_no_turn_to_the_transcript(agent: httpx2.AsyncClient, provider: Upstream) -> None:
    order = text(
        "CRITICAL: Respond with TEXT ONLY.\n\nYour task is to create a detailed summary of the conversation so far."
    )
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "cart.py"}
    provider.say(Said(messages_stream(text("<summary>The shop was built.</summary>"))))
    await sent(agent, request(("user", "Hi."), ("assistant", [call]), ("user", [result, order])))
    kept = await stored(agent, SESSION, 3)
    assert [[block["type"] for block in each["content"]] for each in kept] == [["text"], ["tool_use"], ["tool_result"]]
    provider.say(Said(messages_stream(text("Yes."))))
    await sent(agent, request(("user", "Hi."), ("assistant", [call]), ("user", [result]), ("user", "Go on.")))
    assert [each["text"] for each in await stored(agent, SESSION, 5)][3:] == ["Go on.", "Yes."]


async def test_no_id_confirms_a_guess_of_a_forgotten_turn_and_its_conversation_goes_on(
    agent: httpx2.AsyncClient, other_agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "cart.py"}
    turns = [("user", "The vault is called Xanadu."), ("assistant", [call]), ("user", [result])]
    provider.say(Said(messages_stream(text("Hello."))))
    await sent(agent, request(*turns))
    turns += [("assistant", "Hello."), ("user", "Go on.")]
    await sent(agent, request(*turns))
    before = await stored(agent, SESSION, 6)
    assert [each["external_id"] for each in before[:5]] == [turn.id for turn in identified(map(as_turn, turns))]
    receipt = (await agent.post("/v1/forget", json={"words": ["Xanadu"]})).json()
    assert (receipt["messages"], receipt["renamed"]) == (1, 0)
    after = await stored(agent, SESSION, 6)
    kept = [one["seq"] for one, other in zip(before, after, strict=True) if one["external_id"] == other["external_id"]]
    assert kept == [2, 3], "only turns with calls, whose ids are made of those of the calls"
    for number, client in enumerate((agent, other_agent, agent)):
        turns += [("assistant", "Hello."), ("user", f"Step {number}.")]
        await sent(client, request(*turns))
        shown = await stored(client, SESSION, len(turns) + 1)
        steps = [words for step in range(number + 1) for words in (f"Step {step}.", "Hello.")]
        assert [each["text"] for each in shown[5:]] == ["Hello.", *steps]
    assert (await agent.post("/v1/forget", json={"words": ["Step 1"]})).json()["messages"] == 1
    again = await stored(agent, SESSION, len(turns) + 1)
    assert [one["external_id"] for one in again[:6]] == [one["external_id"] for one in after]
    await sent(other_agent, request(*turns, ("assistant", "Hello."), ("user", "The end.")))
    last = await stored(agent, SESSION, len(turns) + 3)
    assert [each["text"] for each in last] == [*(each["text"] for each in again), "The end.", "Hello."]


def as_turn(turn: tuple[str, Any]) -> Turn:
    """Return a turn as the gateway reads it from a request."""
    role, content = turn
    return Turn("user" if role == "user" else "assistant", [text(content)] if isinstance(content, str) else content)


async def test_a_session_that_hooks_opened_is_left_to_them(agent: httpx2.AsyncClient, provider: Upstream) -> None:
    await agent.post("/v1/memories", json={"content": "The shop deploys on Fridays.", "kind": "manual"})
    await agent.post("/v1/sessions", json={"client": "claude-code", "external_id": SESSION})
    provider.say(Said(messages_stream(text("Hello."))))
    body = json.dumps(request(("user", "Hi."))).encode()
    await sent(agent, body)
    assert provider.arrived[0].body == body
    [session] = (await agent.get(f"/v1/sessions?external_id={SESSION}")).json()["sessions"]
    await until(agent, f"/v1/sessions/{session['id']}/memory", lambda memory: memory["usage"])
    assert (await agent.get(f"/v1/sessions/{session['id']}/messages")).json()["messages"] == []


async def test_a_transcript_of_a_kept_session_adds_only_what_the_gateway_has_not_seen(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
    provider.say(Said(messages_stream(text("I look."), call)))
    reminder = text("<system-reminder>\nbe brief\n</system-reminder>")
    await sent(agent, request(("user", [reminder, text("Which files are there?")])))
    await stored(agent, SESSION, 2)
    [session] = (await agent.get(f"/v1/sessions?external_id={SESSION}")).json()["sessions"]
    # Claude Code writes each block of an answer as an entry of its own.
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "cart.py"}
    entries = [
        ("user", "Which files are there?"),
        ("assistant", [{"type": "thinking", "thinking": "hm"}]),
        ("assistant", [text("I look.")]),
        ("assistant", [call]),
        ("user", [result]),
        ("assistant", "I look."),
    ]
    batch = [{"external_id": f"e{n}", "role": role, "content": said} for n, (role, said) in enumerate(entries)]
    report = (await agent.post(f"/v1/sessions/{session['id']}/messages", json={"messages": batch})).json()
    assert (report["accepted"], report["duplicates"]) == (2, 4)
    assert [each["content"] for each in (await stored(agent, SESSION, 4))[2:]] == [[result], [text("I look.")]]


async def test_a_sub_agent_has_a_session_of_its_own(agent: httpx2.AsyncClient, provider: Upstream) -> None:
    provider.say(Said(messages_stream(text("Done."))))
    await sent(agent, request(("user", "Look at the files.")), **{"x-claude-code-agent-id": "a5883"})
    assert [each["text"] for each in await stored(agent, f"{SESSION}/agent-a5883", 2)] == [
        "Look at the files.",
        "Done.",
    ]


async def test_a_client_that_goes_away_ends_the_providers_work(agent: httpx2.AsyncClient, provider: Upstream) -> None:
    provider.say(Said(messages_stream(text("Hello.")), gate=asyncio.Event()))
    own = {"content-type": "application/json", **CLAUDE}
    body = json.dumps(request(("user", "Hi.")))
    async with agent.stream("POST", "/gateway/model/v1/messages", content=body, headers=own) as answer:
        await anext(answer.aiter_raw())
    await asyncio.wait_for(provider.gone.wait(), 30)
    # The question is kept, and the broken answer is not.
    assert [each["text"] for each in await stored(agent, SESSION, 1)] == ["Hi."]


async def test_an_answer_is_kept_though_the_client_closes_the_connection_at_its_last_event(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    # The provider does not end the connection after the last event.
    provider.say(Said([b"".join(messages_stream(text("Hello."))), b"\n"], gate=asyncio.Event()))
    own = {"content-type": "application/json", **CLAUDE}
    body = json.dumps(request(("user", "Hi.")))
    async with agent.stream("POST", "/gateway/model/v1/messages", content=body, headers=own) as answer:
        await anext(answer.aiter_raw())
    assert [each["text"] for each in await stored(agent, SESSION, 2)] == ["Hi.", "Hello."]


async def test_a_websocket_is_refused_in_a_way_that_clients_understand(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    own = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-key": "x", "sec-websocket-version": "13"}
    answer = await agent.get("/gateway/~client=codex/model/v1/responses", headers=own)
    assert answer.status_code == 426
    assert provider.arrived == []


async def test_an_excluded_project_passes_unread(agent: httpx2.AsyncClient, provider: Upstream) -> None:
    provider.say(Said(messages_stream(text("Hello."))))
    body = json.dumps(request(("user", "Hi."))).encode()
    await sent(agent, body, **{"x-esker-project": "acme/hidden"})
    assert provider.arrived[0].body == body
    assert (await agent.get("/v1/sessions")).json()["sessions"] == []


async def test_only_named_providers_are_reached(agent: httpx2.AsyncClient) -> None:
    answer = await agent.post("/gateway/elsewhere/v1/messages", json={}, headers=CLAUDE)
    assert answer.status_code == 404
    assert "anthropic, chatgpt, gemini, model, openai" in answer.json()["detail"]
    for upward in ("%2e%2e/", "..%2f", "..%5c", "..;/"):
        answer = await agent.post(f"/gateway/model/v1/{upward}messages", json={}, headers=CLAUDE)
        assert answer.status_code == 422, upward


async def test_the_turns_of_a_request_are_kept_though_its_answer_cannot_be_read(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    provider.say(Said([b"<html>"], headers={"content-type": "text/html"}))
    await sent(agent, request(("user", "Hi.")))
    assert [each["text"] for each in await stored(agent, SESSION, 1)] == ["Hi."]


async def test_an_answer_that_the_provider_cuts_off_ends_so_for_the_client(
    agent: httpx2.AsyncClient, provider: Upstream, log_records: list[logging.LogRecord]
) -> None:
    headers = {"content-type": "text/event-stream", "content-length": "9999"}
    provider.say(Said(messages_stream(text("Hello."))[:2], headers=headers))
    with pytest.raises(httpx2.RemoteProtocolError):
        await sent(agent, request(("user", "Hi.")))
    assert [each["text"] for each in await stored(agent, SESSION, 1)] == ["Hi."]
    ours = [each for each in log_records if "was cut off" in each.getMessage()]
    assert [each.exc_info for each in ours] == [None]


@pytest.mark.parametrize(
    ("odd", "count"), [([text("a\0b")], 4), ([text("a\ud800b")], 4), ([{"type": "tool_use", "name": None}], 3)]
)
async def test_a_turn_that_cannot_be_stored_costs_no_other_turn(
    agent: httpx2.AsyncClient, provider: Upstream, odd: Any, count: int
) -> None:
    provider.say(Said(messages_stream(text("Hello."))))
    await sent(agent, request(("user", "Hi."), ("assistant", odd), ("user", "And now?")))
    messages = await stored(agent, SESSION, count)
    assert [each["text"] for each in messages if each["role"] == "user"] == ["Hi.", "And now?"]
    assert (len(messages), messages[-1]["text"]) == (count, "Hello.")


async def test_a_sender_that_wants_not_to_be_read_is_not_whatever_the_rules_say(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    # A rule of the server has another mode for this client.
    provider.say(Said(messages_stream(text("Hello."))))
    before = await counted(agent, "off")
    for mode in ("off", "OFF"):
        headers = {"x-esker-client": "codex", "x-esker-mode": mode}
        await sent(agent, request(("user", "Hi.")), **headers)
    assert await counted(agent, "off") == before + 2
    assert (await agent.get("/v1/sessions")).json()["sessions"] == []


@pytest.mark.parametrize(("address", "header"), [("", "Off-ish"), ("~mode=zz/", "pack")])
async def test_a_mode_that_does_not_exist_is_refused_and_never_the_usual_one(
    agent: httpx2.AsyncClient, provider: Upstream, address: str, header: str
) -> None:
    headers = {**CLAUDE, "x-esker-mode": header}
    answer = await agent.post(f"/gateway/{address}model/v1/messages", json=request(("user", "Hi.")), headers=headers)
    assert answer.status_code == 422
    assert "off, watch, pack, manage" in answer.json()["detail"]
    assert provider.arrived == []


async def test_a_watched_request_passes_byte_for_byte_and_is_kept_and_counted(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    await agent.post("/v1/memories", json={"content": "The shop deploys on Fridays.", "kind": "manual"})
    provider.say(Said(messages_stream(text("Hello."))))
    before = await counted(agent, "watched")
    body = json.dumps(request(("user", "Hi."))).encode()
    await sent(agent, body, **{"x-esker-mode": "Watch"})
    assert provider.arrived[0].body == body
    assert await counted(agent, "watched") == before + 1
    assert [each["text"] for each in await stored(agent, SESSION, 2)] == ["Hi.", "Hello."]


@pytest.mark.parametrize(("name", "value"), [("client", "c" * 65), ("session", "s" * 513), ("project", "p" * 513)])
async def test_a_request_with_a_name_that_cannot_be_stored_passes_unread(
    agent: httpx2.AsyncClient, provider: Upstream, name: str, value: str
) -> None:
    provider.say(Said(messages_stream(text("Hello."))))
    before = await counted(agent, "not understood")
    body = json.dumps(request(("user", "Hi."))).encode()
    assert (await sent(agent, body, **{f"x-esker-{name}": value})).status_code == 200
    assert provider.arrived[0].body == body
    assert await counted(agent, "not understood") == before + 1
    assert (await agent.get("/v1/sessions")).json()["sessions"] == []


async def counted(agent: httpx2.AsyncClient, outcome: str) -> float:
    """Return how many requests had an outcome."""
    lines = (await agent.get("/metrics")).text.splitlines()
    return next((float(each.rpartition(" ")[2]) for each in lines if f'outcome="{outcome}"' in each), 0)


async def test_the_same_words_in_two_projects_are_two_sessions(agent: httpx2.AsyncClient, provider: Upstream) -> None:
    provider.say(Said(messages_stream(text("Hello."))))
    for turns in ([("user", "Hi.")], [("user", "Hi."), ("assistant", [text("Hello.")]), ("user", "And now?")]):
        for project in ("acme/shop", "acme/bank"):
            own = {"x-esker-client": "mine", "x-esker-project": project}
            content = json.dumps(request(*turns))
            await agent.post("/gateway/model/v1/messages", content=content, headers=own)

    def has_both(listed: dict[str, Any]) -> bool:
        return sorted(each["project"] for each in listed["sessions"] if each["client"] == "mine") == [
            "acme/bank",
            "acme/shop",
        ]

    await until(agent, "/v1/sessions", has_both)


async def test_a_conversation_without_a_name_is_known_again_by_another_server(
    agent: httpx2.AsyncClient, other_agent: httpx2.AsyncClient, provider: Upstream, gateway_server: KeptServer
) -> None:
    async def ask(at: httpx2.AsyncClient, *turns: tuple[str, Any], project: str = "acme/shop") -> None:
        headers = {"x-esker-client": "mine", "x-esker-project": project}
        (await at.post("/gateway/model/v1/messages", json=request(*turns), headers=headers)).raise_for_status()

    provider.say(*(Said(messages_stream(text("Hello."), number=number)) for number in range(3)))
    await agent.post("/v1/memories", json={"content": "The shop deploys on Fridays.", "kind": "manual"})
    await ask(agent, ("user", "Hi."))
    await agent.post("/v1/memories", json={"content": "The shop closes at noon.", "kind": "manual"})
    history = ("user", "Hi."), ("assistant", [text("Hello.")]), ("user", "And now?")
    await ask(other_agent, *history)
    first, second = (arrived.json["system"] for arrived in provider.arrived)
    assert first == second
    await ask(other_agent, *history, project="acme/till")
    listed = (await agent.get("/v1/sessions")).json()["sessions"]
    sessions = {each["project"]: each["id"] for each in listed if each["client"] == "mine"}
    for project, calls in (("acme/shop", 2), ("acme/till", 1)):
        await used(agent, sessions[project], calls)
        assert (await agent.get(f"/v1/sessions/{sessions[project]}")).json()["messages"] == 4
    # A hash of so few words would confirm a guess of them.
    (await agent.post("/v1/forget", json={"words": ["And now"]})).raise_for_status()
    counting = await gateway_server.database.owner.execute("SELECT count(*) FROM session_histories")
    assert await counting.fetchall() == [(0,)]


async def used(agent: httpx2.AsyncClient, session: str, calls: int) -> None:
    """Wait until so many exchanges of a session are kept: the usage of each is the last that is stored of it."""
    path = f"/v1/sessions/{session}/memory"
    await until(agent, path, lambda memory: (memory["usage"] or {}).get("calls") == calls)


@pytest.mark.parametrize("mode", ["watch", "pack"])
async def test_a_conversation_without_a_name_begins_once_wherever_its_requests_come_meanwhile(
    agent: httpx2.AsyncClient,
    other_agent: httpx2.AsyncClient,
    provider: Upstream,
    mode: str,
) -> None:
    gate = asyncio.Event()
    answers = [b"".join(messages_stream(text("Hello."), number=number)) for number in range(5)]
    provider.say(*(Said([answer], gate=gate) for answer in answers))
    headers = {"x-esker-client": "mine", "x-esker-mode": mode}

    async def ask(at: httpx2.AsyncClient, *turns: tuple[str, Any]) -> None:
        (await at.post("/gateway/model/v1/messages", json=request(*turns), headers=headers)).raise_for_status()

    # A client repeats its first request, which it has got no answer to.
    asking = [asyncio.create_task(ask(agent, ("user", "Hi."))) for _ in range(3)]
    [session] = (await until(agent, "/v1/sessions", lambda listed: listed["sessions"]))["sessions"]
    asking.append(asyncio.create_task(ask(other_agent, ("user", "Hi."))))
    while len(provider.arrived) < len(asking):
        await asyncio.wait_for(provider.came.wait(), PATIENCE)
        await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(*asking)
    await ask(other_agent, ("user", "Hi."), ("assistant", [text("Hello.")]), ("user", "And now?"))
    listed = (await agent.get("/v1/sessions")).json()["sessions"]
    assert [each["id"] for each in listed] == [session["id"]]
    await used(agent, session["id"], 5)
    assert (await agent.get(f"/v1/sessions/{session['id']}")).json()["messages"] == 4


async def test_two_servers_that_are_asked_for_a_conversation_in_one_moment_begin_one_session(
    agent: httpx2.AsyncClient,
    other_agent: httpx2.AsyncClient,
    gateway_server: KeptServer,
    provider: Upstream,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(placing, "_SECONDS", PATIENCE)
    provider.say(*(Said([b"".join(messages_stream(text("Hello."), number=number))]) for number in range(2)))
    owner = gateway_server.database.owner
    async with owner.transaction():
        # Both servers look for the session, and neither can begin one yet.
        await owner.execute("LOCK TABLE sessions IN SHARE MODE")
        path, body, headers = "/gateway/model/v1/messages", request(("user", "Hi.")), {"x-esker-client": "mine"}
        asking = [asyncio.create_task(each.post(path, json=body, headers=headers)) for each in (agent, other_agent)]
        await eventually(lambda: owner.execute(_WAITING), lambda found: found.rowcount == len(asking))
    assert [each.status_code for each in await asyncio.gather(*asking)] == [200, 200]
    [session] = (await agent.get("/v1/sessions")).json()["sessions"]
    await used(agent, session["id"], 2)
