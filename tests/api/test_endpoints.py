"""Dialects of the Messages API: the requests for each setting, and the answers that are accepted."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from esker.server.app import make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from tests.support.api import observed, opened, said, until
from tests.support.model_server import ModelServer, ScriptedAnswer, model_server
from tests.support.serving import serving
from tests.support.waiting import PATIENCE

FACT: dict[str, Any] = {
    "text": "User decided to use Redis.",
    "priority": "high",
    "category": "decision",
    "sources": [1],
}
ANSWER: dict[str, Any] = {"facts": [FACT]}


@pytest.fixture
async def model() -> AsyncGenerator[ModelServer]:
    """A scripted model."""
    async with model_server() as server:
        server.say(ANSWER)
        yield server


@asynccontextmanager
async def served(model: ModelServer, database_url: str, **settings: str) -> AsyncGenerator[httpx2.AsyncClient]:
    """Run a server with the scripted model and these settings, and yield its client."""
    given = {"ESKER_EMBEDDER": "none", "ESKER_LLM_BASE_URL": model.url, "ESKER_LLM_API_KEY": "sk-scripted"}
    given |= {f"ESKER_LLM_{name.upper()}": value for name, value in settings.items()}
    parts = make_parts(Settings.from_environment(given), Database(database_url), system_clock)
    async with serving(parts) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as connected:
        yield connected


async def session_with_a_message(client: httpx2.AsyncClient) -> str:
    """Return a session with one message."""
    session = await opened(client)
    await said(client, session, "Let's use Redis.")
    return session


async def contents(client: httpx2.AsyncClient) -> list[str]:
    """Return the contents of the live memories."""
    return [row["content"] for row in (await client.get("/v1/memories")).json()["memories"]]


def message(*content: dict[str, Any], **more: Any) -> ScriptedAnswer:
    """Return an answer with these blocks in the format of the API."""
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": list(content)}
    used = {"input_tokens": 100, "output_tokens": 20}
    return ScriptedAnswer(
        raw=json.dumps({**start, "stop_reason": "end_turn", "stop_sequence": None, "usage": used} | more)
    )


def text(words: str) -> dict[str, Any]:
    """Return a block of text."""
    return {"type": "text", "text": words}


def system_of(asked: dict[str, Any]) -> str:
    """Return the system prompt of a request."""
    return "\n".join(block["text"] for block in asked["system"])


# The shape of an answer -------------------------------------------------------------------------------------------


async def test_by_default_the_schema_is_sent(model: ModelServer, database_url: str) -> None:
    async with served(model, database_url) as client:
        await observed(client, await session_with_a_message(client))
    [asked] = model.asked
    assert asked["output_config"]["format"]["type"] == "json_schema"
    assert "facts" in asked["output_config"]["format"]["schema"]["properties"]
    assert asked.keys() & {"tools", "tool_choice"} == set()


async def test_with_tool_the_input_of_a_forced_tool_is_the_answer(model: ModelServer, database_url: str) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "answer", "input": ANSWER}
    model.say(message({"type": "thinking", "thinking": "Hm.", "signature": ""}, text("Here:"), call))
    async with served(model, database_url, structured="tool") as client:
        await observed(client, await session_with_a_message(client))
        assert await contents(client) == [FACT["text"]]
    [asked] = model.asked
    [tool] = asked["tools"]
    assert asked["tool_choice"] == {"type": "tool", "name": tool["name"]} == {"type": "tool", "name": "answer"}
    assert "facts" in tool["input_schema"]["properties"]
    assert "output_config" not in asked


async def test_an_answer_in_text_instead_of_the_forced_tool_is_read(model: ModelServer, database_url: str) -> None:
    async with served(model, database_url, structured="tool") as client:
        await observed(client, await session_with_a_message(client))
        assert await contents(client) == [FACT["text"]]
    assert len(model.asked) == 1


async def test_an_unusable_tool_answer_is_sent_back_as_text(model: ModelServer, database_url: str) -> None:
    bad = {"type": "tool_use", "id": "toolu_1", "name": "answer", "input": {"facts": [{"text": "x"}]}}
    good = {"type": "tool_use", "id": "toolu_2", "name": "answer", "input": ANSWER}
    model.say(message(bad), message(good))
    async with served(model, database_url, structured="tool") as client:
        await observed(client, await session_with_a_message(client))
        assert await contents(client) == [FACT["text"]]
    # A tool call in the transcript would need a tool result; text needs none.
    [mine, complaint] = model.asked[1]["messages"][1:]
    assert (mine["role"], json.loads(mine["content"])) == ("assistant", bad["input"])
    assert complaint["content"].startswith("That answer cannot be used: ")


async def test_with_prompt_the_schema_is_only_in_the_prompt(model: ModelServer, database_url: str) -> None:
    async with served(model, database_url, structured="prompt") as client:
        await observed(client, await session_with_a_message(client))
        assert await contents(client) == [FACT["text"]]
    [asked] = model.asked
    assert asked.keys() & {"output_config", "tools", "tool_choice"} == set()
    schema = json.loads(system_of(asked).rpartition("\n")[2])
    assert "facts" in schema["properties"]


async def test_a_reflector_requests_its_answer_in_the_same_way(model: ModelServer, database_url: str) -> None:
    async with served(model, database_url, structured="prompt") as client:
        session = await session_with_a_message(client)
        await observed(client, session)
        await said(client, session, "The harbour is closed on Sundays, and the ferry goes from the other side.")
        model.say({"facts": [{**FACT, "text": "The harbour is closed on Sundays.", "sources": [2]}]})
        await observed(client, session)
        model.say({"rows": []})
        await client.post(f"/v1/sessions/{session}/reflect?wait=true")
    assert "output_config" not in model.asked[-1]
    assert "rows" in json.loads(system_of(model.asked[-1]).rpartition("\n")[2])["properties"]


@pytest.mark.parametrize("mode", ["schema", "tool", "prompt"])
async def test_a_rejected_request_names_the_setting_to_try(model: ModelServer, database_url: str, mode: str) -> None:
    model.say(ScriptedAnswer("output_config: Extra inputs are not permitted", status=400))
    async with served(model, database_url, structured=mode) as client:
        session = await session_with_a_message(client)
        answer = await client.post(f"/v1/sessions/{session}/observe?wait=true")
        # A caller that did not wait finds the same message in the job.
        shown = await until(client, f"/v1/sessions/{session}", lambda s: s["jobs"][0]["last_error"])
    assert (answer.status_code, "Extra inputs" in answer.json()["detail"]) == (502, True)
    for hint in (answer.json()["hint"], shown["jobs"][0]["hint"]):
        assert "set ESKER_LLM_STRUCTURED" in hint


# Headers and parameters --------------------------------------------------------------------------------------------


async def test_the_key_and_the_version_are_in_the_configured_headers(model: ModelServer, database_url: str) -> None:
    async with served(model, database_url, version="2023-06-01", key_header="x-api-key") as client:
        await observed(client, await session_with_a_message(client))
    [sent] = model.headers
    assert (sent["anthropic-version"], sent["x-api-key"]) == ("2023-06-01", "sk-scripted")
    assert "authorization" not in sent


async def test_by_default_the_key_is_a_bearer_token(model: ModelServer, database_url: str) -> None:
    async with served(model, database_url) as client:
        await observed(client, await session_with_a_message(client))
    [sent] = model.headers
    assert sent["authorization"] == "Bearer sk-scripted"
    assert "x-api-key" not in sent
    assert sent["anthropic-version"] > "2023-06-01"


@pytest.mark.parametrize(("setting", "sent"), [({}, None), ({"temperature": "0"}, 0), ({"temperature": "0.5"}, 0.5)])
async def test_a_temperature_is_sent_only_if_configured(
    model: ModelServer, database_url: str, setting: dict[str, str], sent: float | None
) -> None:
    async with served(model, database_url, **setting) as client:
        await observed(client, await session_with_a_message(client))
    assert model.asked[0].get("temperature") == sent
    assert ("temperature" in model.asked[0]) == bool(setting)


async def test_the_system_prompt_never_changes_and_requests_caching(model: ModelServer, database_url: str) -> None:
    model.say({"facts": []})
    async with served(model, database_url) as client:
        session = await session_with_a_message(client)
        await observed(client, session)
        await said(client, session, "And something else.")
        await observed(client, session)
    first, second = model.asked
    assert first["system"] == second["system"]
    assert first["messages"] != second["messages"]
    assert first["system"][-1]["cache_control"] == {"type": "ephemeral"}


# Incomplete answers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "used",
    [None, {}, {"input_tokens": None, "output_tokens": 3}, {"input_tokens": 5, "output_tokens": 1, "new_tokens": "x"}],
    ids=["null", "empty", "a part", "more than we know"],
)
async def test_an_answer_with_incomplete_usage_is_used(
    model: ModelServer, database_url: str, used: dict[str, Any] | None
) -> None:
    model.say(message(text(json.dumps(ANSWER)), usage=used))
    async with served(model, database_url) as client:
        await observed(client, await session_with_a_message(client))
        assert await contents(client) == [FACT["text"]]
        [spent] = (await client.get("/v1/spend")).json()["days"]
    known = used or {}
    assert spent["calls"] == 1
    assert (spent["input_tokens"], spent["output_tokens"]) == (
        known.get("input_tokens") or 0,
        known.get("output_tokens") or 0,
    )


async def test_an_answer_without_usage_is_used(model: ModelServer, database_url: str) -> None:
    whole = json.loads(message(text(json.dumps(ANSWER))).raw or "")
    del whole["usage"]
    model.say(ScriptedAnswer(raw=json.dumps(whole)))
    async with served(model, database_url) as client:
        await observed(client, await session_with_a_message(client))
        assert await contents(client) == [FACT["text"]]
        assert (await client.get("/v1/spend")).json()["days"][0]["calls"] == 1


@pytest.mark.parametrize(
    "used",
    [{"input_tokens": "many", "output_tokens": -5}, {"input_tokens": -1, "output_tokens": [1]}, "nothing", 5, []],
    ids=["words", "less than nothing", "a string", "a number", "a list"],
)
async def test_an_invalid_token_count_counts_as_zero(model: ModelServer, database_url: str, used: Any) -> None:
    model.say(message(text(json.dumps(ANSWER)), usage=used))
    async with served(model, database_url) as client:
        await observed(client, await session_with_a_message(client))
        assert await contents(client) == [FACT["text"]]
        [spent] = (await client.get("/v1/spend")).json()["days"]
    assert (spent["input_tokens"], spent["output_tokens"]) == (0, 0)


async def test_thinking_blocks_are_not_part_of_the_answer(model: ModelServer, database_url: str) -> None:
    thought = {"type": "thinking", "thinking": '{"facts": []}', "signature": "x"}
    model.say(message(thought, text(json.dumps(ANSWER)), {"type": "new_block", "x": 1}))
    async with served(model, database_url) as client:
        await observed(client, await session_with_a_message(client))
        assert await contents(client) == [FACT["text"]]


@pytest.mark.parametrize("content", ["str", [None], ["s"], {"a": 1}, [{"type": "text"}], [{"type": "text", "text": 5}]])
async def test_an_answer_without_content_is_a_failure_and_loses_nothing(
    model: ModelServer, database_url: str, content: Any
) -> None:
    answer = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": content}
    usage = {"input_tokens": 1, "output_tokens": 1}
    model.say(
        ScriptedAnswer(raw=json.dumps({**answer, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}))
    )
    async with served(model, database_url) as client:
        session = await session_with_a_message(client)
        refused = await client.post(f"/v1/sessions/{session}/observe?wait=true")
        assert (refused.status_code, "not a Messages API message" in refused.json()["detail"]) == (502, True)
        assert (await client.get(f"/v1/sessions/{session}")).json()["unobserved_tokens"] > 0
