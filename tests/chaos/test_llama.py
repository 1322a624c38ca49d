"""A real server and a real, if hopeless, model: llama.cpp with 270 million parameters. `make llama` installs both."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import httpx2
import pytest
from pydantic import BaseModel, ValidationError

from esker.server.app import make_parts
from esker.server.core.budgets import small_observer
from esker.server.core.config.settings import Settings
from esker.server.core.errors import ContextExceeded, RequestRefused
from esker.server.db.database import Database
from esker.server.providers.context_size import ServerContextSize
from esker.server.providers.endpoints import Endpoint, Protocol
from esker.server.providers.language_model import ModelReply
from esker.server.providers.language_models import model_at
from esker.server.providers.model_observer import SmallObserverAnswer
from tests.support.api import opened, said
from tests.support.model_server import Unmetered
from tests.support.processes import ROOT
from tests.support.serving import serving

pytestmark = [
    pytest.mark.skipif(find_spec("xllamacpp") is None, reason="xllamacpp is not installed; `make llama` installs it"),
    pytest.mark.timeout(900),
]
CONTEXT = 2_048
PROTOCOLS: list[Protocol] = ["messages", "chat"]
WORDS = [{"type": "text", "text": "[1] user\nWe decided to use Redis."}]
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


class Priority(BaseModel):
    """A short shape, which fits into a few tokens."""

    important: bool


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the server."""
    file = tmp_path_factory.mktemp("llama") / "model.gguf"
    program = [sys.executable, str(ROOT / "tests/support/llama_server.py"), str(file), str(CONTEXT)]
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout
        yield process.stdout.readline().strip()
        process.kill()


async def asked(url: str, protocol: Protocol, shape: type[BaseModel], **more: Any) -> list[ModelReply]:
    """Ask the model, and return its replies as they are read."""
    replies: list[ModelReply] = []
    content, tokens = more.pop("content", WORDS), more.pop("max_tokens", 40)

    def read(reply: ModelReply) -> str:
        replies.append(reply)
        return reply.text

    model = model_at("gemma", Endpoint(url, protocol=protocol, temperature=0, timeout=600, **more))
    try:
        await model.ask("Answer in JSON.", content, shape, read, max_tokens=tokens, meter=Unmetered())
    finally:
        await model.close()
    return replies


async def test_a_schema_binds_the_grammar_of_chat_completions(llama: str) -> None:
    [reply] = await asked(llama, "chat", Priority)
    # Even this model cannot but answer in the shape.
    assert isinstance(json.loads(reply.text)["important"], bool)
    assert not reply.cut_off


async def test_the_messages_api_of_llama_cpp_ignores_the_schema(llama: str) -> None:
    [reply] = await asked(llama, "messages", Priority)
    with pytest.raises(ValidationError):
        Priority.model_validate_json(reply.text)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_an_answer_that_reaches_its_length_says_so(llama: str, protocol: Protocol) -> None:
    [reply] = await asked(llama, protocol, SmallObserverAnswer, max_tokens=8)
    assert (reply.cut_off, reply.output_tokens) == (True, 8)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_request_beyond_the_context_is_refused_as_that(llama: str, protocol: Protocol) -> None:
    with pytest.raises(ContextExceeded) as raised:
        await asked(llama, protocol, Priority, content=[{"type": "text", "text": "word " * 6_000}])
    assert raised.value.context == CONTEXT


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_an_image_is_refused_and_not_taken_for_an_outage(llama: str, protocol: Protocol) -> None:
    with pytest.raises(RequestRefused):
        await asked(llama, protocol, Priority, content=[*WORDS, IMAGE])


async def test_the_server_says_how_long_its_context_is(llama: str) -> None:
    assert await ServerContextSize("gemma", Endpoint(llama, protocol="chat")).tokens() == CONTEXT


async def test_a_cancelled_call_frees_the_server_for_the_next(llama: str) -> None:
    endless = asyncio.create_task(asked(llama, "chat", SmallObserverAnswer, max_tokens=3_000))
    async with httpx2.AsyncClient(base_url=llama) as client:
        while not any(slot["is_processing"] for slot in (await client.get("/slots")).json()):
            pass
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless
        # There is one slot: the next answer comes only when the cancelled one has left it.
        [reply] = await asked(llama, "chat", Priority)
    assert "important" in reply.text


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_observation_runs_against_it_and_loses_nothing(llama: str, database_url: str, protocol: Protocol) -> None:
    environment = {"ESKER_EMBEDDER": "none", "ESKER_LLM_BASE_URL": llama, "ESKER_LLM_PROTOCOL": protocol}
    environment |= {"ESKER_LLM_MODEL": "gemma", "ESKER_LLM_TEMPERATURE": "0", "ESKER_LLM_TIMEOUT_SECONDS": "800"}
    parts = make_parts(Settings.from_environment(environment), Database(database_url))
    assert parts.observer
    assert await parts.observer.budget() == small_observer(CONTEXT)
    async with serving(parts) as url, httpx2.AsyncClient(base_url=url, timeout=900) as client:
        session = await opened(client)
        await said(client, session, "We decided to use Redis.")
        answer = await client.post(f"/v1/sessions/{session}/observe?wait=true")
        shown = (await client.get(f"/v1/sessions/{session}")).json()
        rows = (await client.get("/v1/memories")).json()["memories"]
        [spent] = (await client.get("/v1/spend")).json()["days"]
    # It writes nonsense, which is refused, or a failure that keeps the message; never a row without its source.
    assert answer.status_code in (200, 502)
    assert shown["observed_messages"] == (1 if answer.status_code == 200 else 0)
    assert all(row["source_seqs"] == [1] for row in rows)
    assert spent["calls"] in (1, 2)
    assert spent["output_tokens"] > 0
