"""The OpenAI Agents SDK with Esker: a session of its runner."""
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import pytest

from esker import Esker

agents = pytest.importorskip("agents", reason="`make integrations` installs it")

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from agents.memory import Session
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from esker.server.client.integrations.openai_agents import EskerSession


@pytest.fixture
async def esker(client: httpx2.AsyncClient) -> AsyncGenerator[Esker]:
    """A client of a server with an empty pool."""
    async with Esker(str(client.base_url)) as connected:
        yield connected


async def test_a_session_keeps_items_as_they_are(esker: Esker) -> None:
    items: list[Any] = [
        {"role": "user", "content": "We decided that invoices are numbered by year."},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": 1}'},
        {"type": "function_call_output", "call_id": "c1", "output": "Found it."},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Noted.", "annotations": []}],
        },
    ]
    session = EskerSession("ada", esker=esker, project="shop")
    assert isinstance(session, Session)
    await asyncio.gather(session.get_items(), session.get_items())
    await session.add_items(items)
    assert await EskerSession("ada", esker=esker).get_items() == items
    assert await session.get_items(2) == items[-2:]
    assert await session.get_items(0) == []
    assert await session.pop_item() == items[-1]
    assert await session.get_items() == items[:-1]
    stored = await esker.session("openai-agents", "ada")
    assert (await stored.observe()).memories == 1
    assert (await esker.recall("How are invoices numbered?", project="shop")).hits
    await session.clear_session()
    assert await session.get_items() == []
    assert await session.pop_item() is None


async def test_the_runner_sends_what_was_said_before(esker: Esker) -> None:
    class Scripted(Model):
        def __init__(self) -> None:
            self.asked: list[Any] = []

        async def get_response(self, system_instructions: Any, input: Any, *others: Any, **more: Any) -> ModelResponse:  # noqa: A002
            self.asked.append(input)
            text = ResponseOutputText(type="output_text", text=f"Answer {len(self.asked)}.", annotations=[])
            message = ResponseOutputMessage(
                id=f"msg_{len(self.asked)}", type="message", role="assistant", status="completed", content=[text]
            )
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        def stream_response(self, *others: Any, **more: Any) -> Any:
            raise NotImplementedError

    model = Scripted()
    agent, quiet = Agent(name="a", model=model), RunConfig(tracing_disabled=True)
    for words in ("I am Ada.", "Who am I?"):
        session = EskerSession("run", esker=esker)
        done = await Runner.run(agent, words, session=session, run_config=quiet)
    assert done.final_output == "Answer 2."
    assert [item.get("content") for item in model.asked[1] if item.get("role") == "user"] == ["I am Ada.", "Who am I?"]
    assert len(model.asked[1]) == 3
