"""A language model observes and reflects, behind the Messages API over a real socket; its answers are scripted."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from esker.server.app import make_parts
from esker.server.core.config.settings import Settings
from esker.server.core.text.tokens import estimate_tokens
from esker.server.db.database import Database
from esker.server.usecases import run_job
from tests.support.api import observed, opened, said, until
from tests.support.model_server import ModelServer, ScriptedAnswer
from tests.support.scripted_clients import ScriptedClient, said_by
from tests.support.serving import serving
from tests.support.waiting import PATIENCE

FACT: dict[str, Any] = {
    "text": "User decided to use Redis.",
    "priority": "high",
    "category": "decision",
    "sources": [1],
}
ANSWER: dict[str, Any] = {"facts": [FACT], "current_task": "Move sessions.", "thread_title": "Sessions"}


@pytest.fixture
def client(scripted_client: httpx2.AsyncClient) -> httpx2.AsyncClient:
    """A client of a server with the scripted model."""
    return scripted_client


async def observe(client: httpx2.AsyncClient, session: str) -> httpx2.Response:
    """Ask for a session to be observed, and wait."""
    return await client.post(f"/v1/sessions/{session}/observe?wait=true")


async def rows(client: httpx2.AsyncClient) -> list[dict[str, Any]]:
    """Return all live memories."""
    return (await client.get("/v1/memories")).json()["memories"]


async def test_a_configured_model_observes(client: httpx2.AsyncClient, model: ModelServer) -> None:
    model.say(ANSWER)
    session = await opened(client, project="shop", timezone="Asia/Tokyo")
    await said(
        client,
        session,
        {"external_id": "m1", "role": "user", "content": "Let's use Redis.", "sent_at": "2026-03-02T01:00:00Z"},
    )
    report = await observed(client, session)
    assert (report["memories"], report["observer"]) == (1, "claude-haiku-5-5")
    [row] = await rows(client)
    assert (row["content"], row["source_seqs"], row["trust"]) == ("User decided to use Redis.", [1], "user")
    assert row["said_at"] == "2026-03-02T01:00:00Z"
    shown = (await client.get(f"/v1/sessions/{session}")).json()
    assert (shown["current_task"], shown["thread_title"]) == ("Move sessions.", "Sessions")
    assert "[1] user, Monday 2026-03-02 10:00\nLet's use Redis." in model.prompt()
    assert "Project: shop" in model.prompt()
    assert model.asked[0]["output_config"]["format"]["type"] == "json_schema"
    assert model.headers[0]["authorization"] == "Bearer sk-scripted"


async def test_a_model_behind_chat_completions_observes_and_is_counted(model: ModelServer, database_url: str) -> None:
    environment = model.environment() | {"ESKER_LLM_PROTOCOL": "chat", "ESKER_LLM_MODEL": "qwen3:8b"}
    parts = make_parts(Settings.from_environment(environment), Database(database_url))
    model.say("I think it is Redis.", ANSWER)
    async with serving(parts) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as connected:
        session = await opened(connected)
        await said(connected, session, "Let's use Redis.")
        report = await observed(connected, session)
        assert (report["memories"], report["observer"]) == (1, "qwen3:8b")
        assert [row["content"] for row in await rows(connected)] == ["User decided to use Redis."]
        [spent] = (await connected.get("/v1/spend")).json()["days"]
    assert (spent["model"], spent["calls"], spent["input_tokens"], spent["output_tokens"]) == ("qwen3:8b", 2, 200, 40)
    assert [asked["response_format"]["type"] for asked in model.asked] == ["json_schema"] * 2


async def test_the_model_sees_images_and_earlier_observations(client: httpx2.AsyncClient, model: ModelServer) -> None:
    model.say(ANSWER)
    session = await opened(client)
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    await said(
        client, session, {"external_id": "m1", "role": "user", "content": [image, {"type": "text", "text": "See?"}]}
    )
    await observed(client, session)
    assert "[image]" in model.prompt().split("Transcript:")[1]
    assert [b for m in model.asked[0]["messages"] for b in m["content"] if b["type"] == "image"] == [image]
    model.say({"facts": []})
    await said(client, session, "And now?")
    await observed(client, session)
    [row] = await rows(client)
    shown = f"- {row['id']} {row['said_at'][:10]} {row['priority']} User decided to use Redis."
    assert shown in model.prompt()


@pytest.mark.parametrize(
    "wrapped",
    ["```json\n{}\n```", "Here you are:\n{}\nI hope this helps.", "  {}  ", "[{}]"],
    ids=["fence", "prose", "space", "list"],
)
async def test_json_is_read_in_a_fence_or_within_prose(
    client: httpx2.AsyncClient, model: ModelServer, wrapped: str
) -> None:
    model.say(wrapped.replace("{}", json.dumps(ANSWER)))
    session = await opened(client)
    await said(client, session, "Let's use Redis.")
    assert (await observed(client, session))["memories"] == 1
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        ("I cannot answer in JSON.", "not a JSON object"),
        ({"facts": [{"text": "x"}]}, "facts.0.priority"),
        ({"facts": [{**FACT, "sources": []}]}, "sources"),
        ({"facts": [{**FACT, "sources": [1, 99]}]}, "message 99 was not shown"),
        ({"facts": [{**FACT, "refers_from": "0001-01-01T00:00:00Z"}]}, "year"),
        ("", "not a JSON object"),
    ],
)
async def test_an_unusable_answer_is_sent_back_once(
    client: httpx2.AsyncClient, model: ModelServer, bad: Any, complaint: str
) -> None:
    model.say(bad if isinstance(bad, str) else json.dumps(bad), ANSWER)
    session = await opened(client)
    await said(client, session, "Let's use Redis.")
    assert (await observed(client, session))["memories"] == 1
    assert len(model.asked) == 2
    assert complaint in model.prompt()


@pytest.mark.parametrize(
    "bad",
    [
        ScriptedAnswer("no JSON"),
        ScriptedAnswer('{"facts": [', stop_reason="max_tokens"),
        ScriptedAnswer("I will not.", stop_reason="refusal"),
        ScriptedAnswer("overloaded", status=400),
        ScriptedAnswer("no such key", status=401),
    ],
    ids=["nonsense", "cut off", "refused", "bad request", "unauthorised"],
)
async def test_a_failing_model_loses_nothing_and_its_failure_is_visible(
    client: httpx2.AsyncClient, model: ModelServer, bad: ScriptedAnswer
) -> None:
    model.say(bad)
    session = await opened(client)
    await said(client, session, "Let's use Redis.")
    answer = await observe(client, session)
    assert answer.status_code == 502
    assert "claude-haiku-5-5" in answer.json()["detail"]
    shown = (await client.get(f"/v1/sessions/{session}")).json()
    assert (shown["observed_messages"], shown["unobserved_tokens"] > 0) == (0, True)
    [job] = shown["jobs"]
    # A key that is not accepted says nothing about the job, so the attempt does not count.
    attempts = 0 if bad.status == 401 else 1
    assert (job["kind"], job["state"], job["attempts"]) == ("observe", "ready", attempts)
    assert job["last_error"] in answer.json()["detail"]
    assert await rows(client) == []
    model.say(ANSWER)
    assert (await observed(client, session))["memories"] == 1


async def test_a_busy_provider_is_retried(client: httpx2.AsyncClient, model: ModelServer) -> None:
    model.say(
        ScriptedAnswer("slow down", status=429, headers={"retry-after": "0"}),
        ScriptedAnswer("busy", status=529),
        ANSWER,
    )
    session = await opened(client)
    await said(client, session, "Let's use Redis.")
    assert (await observed(client, session))["memories"] == 1


async def test_nothing_worth_keeping_covers_the_span(client: httpx2.AsyncClient, model: ModelServer) -> None:
    model.say({"facts": []})
    session = await opened(client)
    await said(client, session, "Hm.")
    report = await observed(client, session)
    assert (report["groups"], report["memories"]) == (1, 0)
    assert (await client.get(f"/v1/sessions/{session}")).json()["unobserved_tokens"] == 0
    await observed(client, session)
    assert len(model.asked) == 1


async def test_messages_without_text_are_covered_without_a_model_call(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    model.say(ANSWER)
    session = await opened(client)
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    await said(client, session, {"external_id": "m1", "role": "assistant", "content": [thinking]})
    report = await observed(client, session)
    assert (report["groups"], report["memories"], model.asked) == (1, 0, [])


async def test_a_backlog_is_shown_once_in_ordered_slices(client: httpx2.AsyncClient, model: ModelServer) -> None:
    model.say({"facts": []})
    session = await opened(client)
    for n in range(20):
        await said(
            client, session, {"external_id": f"m{n}", "role": "user", "content": f"Turn {n}. " + "word " * 4_000}
        )
    await observed(client, session)
    assert len(model.asked) >= 3
    numbers = [number for asked in range(len(model.asked)) for number in _numbers(model.prompt(asked))]
    assert numbers == list(range(1, 21))


def _numbers(prompt: str) -> list[int]:
    return [int(line[1 : line.index("]")]) for line in prompt.splitlines() if line.startswith("[") and "] user" in line]


async def test_a_500_kb_tool_result_costs_no_more_than_its_cap(client: httpx2.AsyncClient, model: ModelServer) -> None:
    model.say({"facts": []})
    session = await opened(client)
    block = {"type": "tool_result", "tool_use_id": "t", "content": "output " * 75_000}
    await said(client, session, {"external_id": "m1", "role": "user", "content": [block]})
    await observed(client, session)
    assert len(model.prompt()) < 3_000


async def test_a_hanging_model_does_not_block_other_requests(
    client: httpx2.AsyncClient, model: ModelServer, owner_url: str
) -> None:
    release = asyncio.Event()
    model.say(ScriptedAnswer('{"facts": []}', wait_for=release))
    sessions = [await opened(client, f"s{n}") for n in range(12)]
    for session in sessions:
        await said(client, session, "Let's use Redis.")
    waiting = [asyncio.create_task(observe(client, session)) for session in sessions]
    await model.arrived.wait()
    at_once = Settings().job_concurrency
    while len(model.asked) < at_once:
        assert (await client.get("/livez")).status_code == 200
    assert (await client.post("/v1/recall", json={"query": "Redis"})).status_code == 200
    assert (await client.post("/v1/memories", json={"content": "Still here."})).status_code == 201
    idle = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in trans%'"
    with psycopg.connect(owner_url, autocommit=True) as connection:
        # Waiting requests poll; a connection that is held while the model answers would be idle all the time.
        while connection.execute(idle).fetchone() != (0,):
            assert (await client.get("/livez")).status_code == 200
    assert len(model.asked) == at_once
    release.set()
    assert {answer.status_code for answer in await asyncio.gather(*waiting)} == {200}


async def test_messages_that_arrive_during_a_call_are_not_marked_observed(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    release = asyncio.Event()
    model.say(ScriptedAnswer('{"facts": []}', wait_for=release))
    session = await opened(client)
    await said(client, session, "First.")
    waiting = asyncio.create_task(observe(client, session))
    await model.arrived.wait()
    late = await said(client, session, "Second.")
    release.set()
    assert (await waiting).json()["groups"] == 1
    shown = (await client.get(f"/v1/sessions/{session}")).json()
    assert shown["observed_messages"] == 1
    assert 0 < shown["unobserved_tokens"] < late["unobserved_tokens"]


# Reflecting --------------------------------------------------------------------------------------------------------


async def with_rows(client: httpx2.AsyncClient, model: ModelServer, *facts: dict[str, Any]) -> tuple[str, list[str]]:
    """Return a session with these facts, and their ids in order."""
    model.say({"facts": list(facts)})
    session = await opened(client)
    await said(client, session, "Let's talk.")
    report = await observed(client, session)
    model.asked.clear()
    return session, report["memory_ids"]


LONG = {**FACT, "text": "User asked about the weather, and the agent explained at great length how it comes about."}
LOW = {**LONG, "priority": "low", "category": "fact"}
OTHER = {**LOW, "text": "The coffee machine of the office was out of order for a whole week in summer."}


def reflected_row(text: str, *sources: str) -> dict[str, Any]:
    """Return a row as a reflecting model writes it."""
    return {"text": text, "priority": "medium", "category": "decision", "source_ids": list(sources)}


async def test_a_model_reflects_and_important_rows_are_carried_over(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    session, (redis, weather, more) = await with_rows(client, model, FACT, LOW, OTHER)
    model.say({"rows": [reflected_row("Weather was discussed.", weather)]})
    answer = await client.post(f"/v1/sessions/{session}/reflect?wait=true")
    assert answer.json()["reflector"] == "claude-sonnet-5-5"
    live = {row["content"]: row for row in await rows(client)}
    assert set(live) == {"Weather was discussed.", FACT["text"]}
    assert live[FACT["text"]]["source_ids"] == [redis]  # the model forgot it; the code did not
    old = (await client.get(f"/v1/memories/{more}")).json()
    assert old["superseded_by"].startswith("ref_")
    assert f"{redis} " in model.prompt()
    assert f"{weather} " in model.prompt()


@pytest.mark.parametrize(
    "bad",
    [
        {"rows": []},
        {"rows": [reflected_row("", "mem_x")]},
        {"rows": [reflected_row("Made up.", "mem_unknown")]},
        {"rows": [reflected_row("The weather was discussed. " * 60, "SOURCE")]},
        "I would rather not.",
        "",
    ],
    ids=["no rows", "empty row", "unknown source", "larger than its input", "prose", "blank"],
)
async def test_a_bad_reflection_changes_nothing(client: httpx2.AsyncClient, model: ModelServer, bad: Any) -> None:
    session, ids = await with_rows(client, model, LOW, OTHER)
    before, pack = await rows(client), (await client.get(f"/v1/sessions/{session}/pack")).json()
    text = bad if isinstance(bad, str) else json.dumps(bad).replace("SOURCE", ids[0])
    model.say(text)
    answer = await client.post(f"/v1/sessions/{session}/reflect?wait=true")
    assert (answer.status_code, bool(answer.json()["rejected"])) == (200, True)
    assert len(model.asked) <= 9  # one that observed, and at most two for each of four levels
    assert await rows(client) == before
    assert (await client.get(f"/v1/sessions/{session}/pack")).json() == pack


async def test_a_row_forgotten_during_a_reflection_does_not_come_back(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    session, ids = await with_rows(client, model, LOW, OTHER)
    release = asyncio.Event()
    model.arrived.clear()
    said_by_model = {"rows": [reflected_row("Weather was discussed.", *ids)]}
    model.say(ScriptedAnswer(json.dumps(said_by_model), wait_for=release))
    waiting = asyncio.create_task(client.post(f"/v1/sessions/{session}/reflect?wait=true"))
    await model.arrived.wait()
    await client.delete(f"/v1/memories/{ids[0]}")
    release.set()
    answer = await waiting
    assert (answer.status_code, "was changed" in answer.json()["detail"]) == (409, True)
    assert [row["id"] for row in await rows(client)] == [ids[1]]


async def test_rows_that_arrive_during_a_reflection_are_untouched(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    session, ids = await with_rows(client, model, LOW, OTHER)
    release = asyncio.Event()
    model.arrived.clear()
    model.say(ScriptedAnswer(json.dumps({"rows": [reflected_row("Weather and coffee.", *ids)]}), wait_for=release))
    waiting = asyncio.create_task(client.post(f"/v1/sessions/{session}/reflect?wait=true"))
    await model.arrived.wait()
    await client.post("/v1/memories", json={"content": "A note meanwhile.", "session_id": session})
    release.set()
    assert (await waiting).status_code == 200
    live = {row["content"]: row["superseded_at"] for row in await rows(client)}
    assert live == {"Weather and coffee.": None, "A note meanwhile.": None}


async def test_a_background_failure_is_visible_and_recovers(client: httpx2.AsyncClient, model: ModelServer) -> None:
    model.say(ScriptedAnswer("nope", status=401))
    session = await opened(client)
    await said(client, session, "Let's use Redis.")
    await client.post(f"/v1/sessions/{session}/observe")
    shown = await until(client, f"/v1/sessions/{session}", lambda s: s["jobs"] and s["jobs"][0]["last_error"])
    assert "401" in shown["jobs"][0]["last_error"]
    model.say(ANSWER)
    assert (await observed(client, session))["memories"] == 1
    # The runner may have taken up the failed job at the same time, and finds nothing left to do.
    await until(client, f"/v1/sessions/{session}", lambda s: not s["jobs"])


@pytest.mark.parametrize(
    "raw",
    [
        json.dumps({**ANSWER, "facts": [{**FACT, "text": "a\0b Redis"}]}),
        json.dumps({**ANSWER, "current_task": "x\0y"}),
        json.dumps({**ANSWER, "thread_title": "cut emoji \ud83d"}),
    ],
    ids=["nul", "nul in the task", "half a character"],
)
async def test_characters_that_postgres_cannot_store_are_cleaned_from_an_answer(
    client: httpx2.AsyncClient, model: ModelServer, raw: str
) -> None:
    model.say(raw)
    session = await opened(client)
    await said(client, session, "Let's use Redis.")
    assert (await observed(client, session))["memories"] == 1


@pytest.mark.parametrize("body", ["<html>", "null", "[]", '"x"', "{}", "[" * 100_000])
async def test_an_endpoint_that_returns_nonsense_fails_and_loses_nothing(
    client: httpx2.AsyncClient, model: ModelServer, body: str
) -> None:
    model.say(ScriptedAnswer(raw=body))
    session = await opened(client)
    await said(client, session, "Let's use Redis.")
    answer = await observe(client, session)
    assert (answer.status_code, answer.headers["content-type"]) == (502, "application/problem+json")
    assert (await client.get(f"/v1/sessions/{session}")).json()["unobserved_tokens"] > 0


async def test_a_deeply_nested_answer_is_sent_back(client: httpx2.AsyncClient, model: ModelServer) -> None:
    model.say('{"facts": ' + "[" * 5_000, json.dumps(ANSWER))
    session = await opened(client)
    await said(client, session, "Let's use Redis.")
    assert (await observed(client, session))["memories"] == 1
    assert len(model.asked) == 2


async def test_slots_of_an_answer_are_bounded_redacted_and_never_blank(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    secret = "ghp_" + "a1B2" * 9
    many = [{**FACT, "text": f"The river {word} is mentioned. {'It was told at length. ' * 5}"} for word in words(900)]
    answer = {"facts": [{**FACT, "text": " "}, {**FACT, "text": "\u200b"}, *many]}
    answer |= {"current_task": f"Use {secret} " + "x" * 5_000, "thread_title": "y" * 5_000}
    model.say(answer)
    session = await opened(client)
    await said(client, session, "Let's use Redis.")
    report = await observed(client, session)
    assert len(model.asked) == 2
    assert "8,000" in model.prompt()
    assert 150 < report["memories"] < 400
    shown = (await client.get(f"/v1/sessions/{session}")).json()
    assert secret not in shown["current_task"]
    assert len(shown["current_task"]) < 600
    assert len(shown["thread_title"]) < 600


def words(count: int) -> list[str]:
    """Return this many different words, none of which is a number."""
    letters = "abcdefghij"
    return [
        f"{letters[n // 1000 % 10]}ra{letters[n // 100 % 10]}o{letters[n // 10 % 10]}ne{letters[n % 10]}"
        for n in range(count)
    ]


@pytest.mark.parametrize("text", [" ", "\u200b", "ok"])
async def test_a_reflection_that_says_next_to_nothing_changes_nothing(
    client: httpx2.AsyncClient, model: ModelServer, text: str
) -> None:
    session, ids = await with_rows(client, model, FACT, LOW)
    before = await rows(client)
    model.say({"rows": [reflected_row(text, *ids)]})
    answer = await client.post(f"/v1/sessions/{session}/reflect?wait=true")
    assert (answer.status_code, "too little" in answer.json()["rejected"]) == (200, True)
    assert await rows(client) == before


async def test_an_impossible_date_does_not_block_a_session(client: httpx2.AsyncClient, model: ModelServer) -> None:
    bad = [{**FACT, "refers_from": "0001-01-01T00:00:00Z"}, {**FACT, "sources": [99]}]
    model.say({"facts": [*bad, FACT]})
    session = await opened(client)
    await said(client, session, "Let's use Redis.")
    assert (await observed(client, session))["memories"] == 1
    assert len(model.asked) == 2


async def test_errors_of_a_provider_are_redacted_and_short(client: httpx2.AsyncClient, model: ModelServer) -> None:
    secret = "sk-proj-" + "a1B2" * 8
    model.say(ScriptedAnswer(f"Incorrect key {secret} " + "x" * 100_000, status=400))
    session = await opened(client)
    await said(client, session, "Let's use Redis.")
    answers = [await observe(client, session), await client.get(f"/v1/sessions/{session}")]
    for answer in answers:
        assert secret not in answer.text
        assert len(answer.text) < 3_000


_PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
IMAGE: dict[str, Any] = {"type": "image", "source": _PNG}


def images_in(asked: dict[str, Any]) -> int:
    """Return how many images a request holds."""
    return sum(block["type"] == "image" for message in asked["messages"] for block in message["content"])


async def test_no_request_holds_more_images_than_its_budget(client: httpx2.AsyncClient, model: ModelServer) -> None:
    model.say({"facts": []})
    session = await opened(client)
    await said(client, session, {"external_id": "many", "role": "user", "content": [IMAGE] * 40})
    await said(client, session, *({"external_id": f"m{n}", "role": "user", "content": [IMAGE] * 5} for n in range(10)))
    await observed(client, session)
    assert len(model.asked) >= 3
    assert all(1 <= images_in(asked) <= 35_000 // 1_600 for asked in model.asked)


async def test_words_are_observed_when_the_model_refuses_an_image(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    model.say(
        lambda asked: (
            ScriptedAnswer("bad image", status=400) if images_in(asked) else ScriptedAnswer(json.dumps(ANSWER))
        )
    )
    session = await opened(client)
    text = {"type": "text", "text": "Let's use Redis."}
    await said(client, session, {"external_id": "m1", "role": "user", "content": [IMAGE, text]})
    assert (await observed(client, session))["memories"] == 1
    assert [images_in(asked) for asked in model.asked] == [1, 0]


async def test_a_request_that_the_model_refuses_is_reported_as_such(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    model.say(ScriptedAnswer("no", status=400))
    session = await opened(client)
    await said(client, session, "Let's use Redis.")
    answer = await observe(client, session)
    assert (answer.status_code, "400" in answer.json()["detail"]) == (502, True)


async def test_a_request_that_waits_too_long_returns_queued(
    client: httpx2.AsyncClient, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_job, "LONGEST_WAIT_SECONDS", 0.2)
    release = asyncio.Event()
    model.say(ScriptedAnswer(json.dumps(ANSWER), wait_for=release))
    session = await opened(client)
    await said(client, session, "Let's use Redis.")
    answer = await observe(client, session)
    assert (answer.status_code, answer.json()["queued"]) == (202, True)
    release.set()
    monkeypatch.undo()
    assert (await observe(client, session)).status_code == 200
    assert len(model.asked) == 1
    [row] = await rows(client)
    assert row["content"] == FACT["text"]


async def test_a_small_model_is_shown_a_backlog_in_short_slices(model: ModelServer, database_url: str) -> None:
    small = {"ESKER_LLM_PROTOCOL": "chat", "ESKER_LLM_MODEL": "qwen3:4b", "ESKER_LLM_SIZE": "small"}
    parts = make_parts(Settings.from_environment(model.environment() | small), Database(database_url))
    model.say({"facts": []})
    async with serving(parts) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as connected:
        session = await opened(connected)
        long = "The harbour is wide. " * 200
        each = [{"external_id": f"m{n}", "role": "user", "content": f"Berth {n}. {long}"} for n in range(16)]
        await said(connected, session, *each)
        await observed(connected, session)
    shown = [estimate_tokens(model.prompt(n).split("Transcript:")[1]) for n in range(len(model.asked))]
    assert len(shown) > 1
    assert max(shown) <= 7_200
    assert max(shown) > 5_000


@pytest.mark.parametrize(
    ("limit", "said_then"), [({"CALLS": "2"}, "has used 2 calls"), ({"TOKENS": "200"}, "has used 240 tokens")]
)
async def test_an_agent_cli_observes_within_its_limits_of_a_day(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: dict[str, str], said_then: str
) -> None:
    cli = ScriptedClient(tmp_path, "codex")
    cli.prints(said_by("codex", json.dumps(ANSWER)))
    for name, value in cli.environ.items():
        monkeypatch.setenv(name, value)
    settings = {"ESKER_OBSERVER": "cli:codex", "ESKER_EMBEDDER": "none"}
    settings |= {f"ESKER_CLI_DAILY_{name}": value for name, value in limit.items()}
    parts = make_parts(Settings.from_environment(settings), Database(database_url))
    async with serving(parts) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as connected:
        session = await opened(connected)
        for text in ("Let's use Redis.", "And Caddy."):
            await said(connected, session, text)
            report = await observed(connected, session)
            assert report["observer"] == "cli:codex"
            cli.prints(said_by("codex", '{"facts": []}'))
        assert "User decided to use Redis." in [row["content"] for row in await rows(connected)]
        await said(connected, session, "And Postgres.")
        refused = await observe(connected, session)
        assert (refused.status_code, said_then in refused.json()["detail"]) == (409, True)
        assert f"ESKER_CLI_DAILY_{next(iter(limit))}" in refused.json()["detail"]
        assert "an agent CLI gets more calls or tokens by the setting" in refused.json()["hint"]
        assert (await connected.get("/readyz")).json()["language_model"] == "ok"
        spent = (await connected.get("/v1/spend")).json()["days"]
        assert [(day["model"], day["calls"], day["cost_usd"]) for day in spent] == [("cli:codex", 2, 0)]
    assert len(cli.calls) == 2


async def test_readyz_says_why_an_agent_cli_cannot_be_used(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli = ScriptedClient(tmp_path, "claude")
    cli.prints(json.dumps({"type": "result", "is_error": True, "result": "Please run /login"}), code=1)
    for name, value in cli.environ.items():
        monkeypatch.setenv(name, value)
    settings = Settings.from_environment({"ESKER_OBSERVER": "cli:claude", "ESKER_EMBEDDER": "none"})
    async with (
        serving(make_parts(settings, Database(database_url))) as url,
        httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as connected,
    ):
        session = await opened(connected)
        await said(connected, session, "Let's use Redis.")
        refused = await observe(connected, session)
        assert (refused.status_code, "not logged in" in refused.json()["detail"]) == (502, True)
        ready = (await connected.get("/readyz")).json()
        # The server serves: only its model is missing, and the messages wait for it.
        assert (ready["ready"], "not logged in" in ready["language_model"]) == (True, True)
        [job] = (await connected.get(f"/v1/sessions/{session}")).json()["jobs"]
        assert (job["state"], job["attempts"]) == ("ready", 0)
