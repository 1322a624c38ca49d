"""Small models: what a server says of its context, and how much such a model is asked at once."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from esker.server.core.budgets import LARGE_OBSERVER, REFLECTION_TOKENS, small_observer, small_reflection
from esker.server.core.errors import ContextExceeded
from esker.server.core.facts.records import TranscriptSlice
from esker.server.core.text.tokens import estimate_tokens
from esker.server.providers.answer_schema import schema_of
from esker.server.providers.context_size import ServerContextSize
from esker.server.providers.endpoints import Endpoint
from esker.server.providers.language_models import model_at
from esker.server.providers.model_observer import ModelObserver, SmallObserverAnswer
from esker.server.providers.model_reflector import ModelReflector
from tests.support.model_server import ScriptedAnswer, Unmetered, model_server
from tests.support.records import message, session
from tests.support.serving import serving_app

LISTS: dict[str, tuple[dict[str, Any], int | None]] = {
    "llama.cpp": ({"/v1/models": {"data": [{"id": "/m.gguf", "meta": {"n_ctx": 4096}}], "models": []}}, 4096),
    "vLLM": ({"/v1/models": {"data": [{"id": "other"}, {"id": "m", "max_model_len": 32768}]}}, 32768),
    "OpenRouter": (
        {"/v1/models": {"data": [{"id": "o", "context_length": 1}, {"id": "m", "context_length": 9000}]}},
        9000,
    ),
    "LM Studio": (
        {
            "/v1/models": {"data": [{"id": "m"}, {"id": "n"}]},
            "/api/v0/models": {"data": [{"id": "m", "max_context_length": 131072, "loaded_context_length": 8192}]},
        },
        8192,
    ),
    "LM Studio, not loaded": (
        {
            "/v1/models": {"data": [{"id": "m"}]},
            "/api/v0/models": {"data": [{"id": "m", "state": "not-loaded", "max_context_length": 131072}]},
        },
        None,
    ),
    "Ollama, loaded": (
        {"/v1/models": {"data": [{"id": "m"}]}, "/api/ps": {"models": [{"name": "m", "context_length": 4096}]}},
        4096,
    ),
    "one that says nothing": ({"/v1/models": {"data": [{"id": "m"}]}}, None),
    "one without lists": ({}, None),
    "one with nonsense": ({"/v1/models": {"data": {"a": 1}, "models": [1, "x", {"name": 5, "meta": []}]}}, None),
    "several models, none of that name": (
        {"/v1/models": {"data": [{"id": "a", "max_model_len": 1}, {"id": "b"}]}},
        None,
    ),
}


@asynccontextmanager
async def listing(lists: dict[str, Any]) -> AsyncIterator[str]:
    """Run a server with these lists of models."""

    async def answer(request: Request) -> JSONResponse:
        found = lists.get(request.url.path)
        return JSONResponse(found or {"error": "none"}, 200 if found else 404)

    async with serving_app(Starlette(routes=[Route("/{path:path}", answer)])) as url:
        yield url


@pytest.mark.parametrize("server", LISTS)
async def test_a_server_is_asked_for_the_context_of_the_model(server: str) -> None:
    lists, tokens = LISTS[server]
    async with listing(lists) as url:
        assert await ServerContextSize("m", Endpoint(url, protocol="chat")).tokens() == tokens
        assert await ServerContextSize("m", Endpoint(f"{url}/v1")).tokens() == tokens


async def test_ollama_loads_the_model_before_it_says_what_context_it_gives() -> None:
    loaded: list[str] = []

    async def generate(request: Request) -> JSONResponse:
        loaded.append((await request.json())["model"])
        return JSONResponse({"done": True})

    async def running(_: Request) -> JSONResponse:
        return JSONResponse({"models": [{"name": name, "context_length": 4096} for name in loaded]})

    async def version(_: Request) -> JSONResponse:
        return JSONResponse({"version": "0.40.12"})

    routes = [Route("/api/generate", generate, methods=["POST"]), Route("/api/ps", running)]
    async with serving_app(Starlette(routes=[*routes, Route("/api/version", version)])) as url:
        assert await ServerContextSize("qwen3:8b", Endpoint(url, protocol="chat")).tokens() == 4096
    assert loaded == ["qwen3:8b"]


async def test_a_server_that_is_down_is_asked_again_the_next_time() -> None:
    size = ServerContextSize("m", Endpoint("http://127.0.0.1:1", protocol="chat"))
    assert await size.tokens() is None
    lists, tokens = LISTS["llama.cpp"]
    async with listing(lists) as url:
        size._endpoint = Endpoint(url, protocol="chat")
        assert await size.tokens() == tokens


@pytest.mark.parametrize(
    ("settings", "small"),
    [
        ({"context_tokens": 32_000}, True),
        ({"context_tokens": 64_000}, False),
        ({"size": "small", "context_tokens": 200_000}, True),
        ({"size": "large", "context_tokens": 8_000}, False),
        ({}, False),
    ],
)
async def test_a_model_is_small_by_setting_or_by_its_context(settings: dict[str, Any], small: bool) -> None:
    assert await ServerContextSize("m", Endpoint(None, **settings)).is_small() is small


@pytest.mark.parametrize("context", [2_048, 4_096, 8_192, 16_384, 32_768])
def test_what_a_small_model_is_shown_and_may_write_fits_into_its_context(context: int) -> None:
    budget = small_observer(context)
    whole = budget.transcript + budget.previous + budget.known + budget.related + budget.answer
    assert whole + 1_000 <= context
    assert small_reflection(context) * 3 <= context
    assert budget.transcript <= 7_000


def test_a_small_model_whose_context_is_unknown_is_shown_seven_thousand_tokens_of_a_transcript() -> None:
    assert 6_000 <= small_observer(None).transcript <= 8_000


def test_a_small_model_is_asked_for_five_fields_with_a_short_prompt() -> None:
    fact = schema_of(SmallObserverAnswer)["properties"]["facts"]["items"]
    assert list(fact["properties"]) == ["text", "priority", "category", "sources", "replaces"]
    observer = ModelObserver(model_at("m", Endpoint(None)))
    assert estimate_tokens(observer._small.prompt) + estimate_tokens(json.dumps(schema_of(SmallObserverAnswer))) < 800


async def test_a_small_models_facts_are_read_with_the_time_in_their_words() -> None:
    fact = {"text": "User will dredge berth 4 on 2031-05-09.", "priority": "high", "category": "next_step"}
    async with model_server() as model:
        model.say({"facts": [{**fact, "sources": [1], "replaces": None}]})
        observer = ModelObserver(model_at("m", Endpoint(model.url, protocol="chat", context_tokens=8_192)))
        shown = TranscriptSlice(session(), (message(1, "user", "I will dredge berth 4 on 2031-05-09."),), ())
        observed = await observer.observe(shown, Unmetered())
        await observer.close()
    [found] = observed.facts
    assert found.refers_from
    assert found.refers_from.date().isoformat() == "2031-05-09"
    [asked] = model.asked
    assert asked["max_tokens"] == small_observer(8_192).answer
    assert asked["response_format"]["json_schema"]["schema"] == schema_of(SmallObserverAnswer)


async def test_a_refused_request_makes_later_ones_shorter() -> None:
    async with model_server() as model:
        model.say(ScriptedAnswer("request (9000 tokens) exceeds the available context size (8192 tokens)", status=400))
        observer = ModelObserver(model_at("m", Endpoint(model.url, protocol="chat")))
        assert await observer.budget() == LARGE_OBSERVER
        with pytest.raises(ContextExceeded):
            await observer.observe(TranscriptSlice(session(), (message(1, "user", "Hello."),), ()), Unmetered())
        assert await observer.budget() == small_observer(8_192)
        await observer.close()


async def test_a_reflector_gets_as_many_rows_as_fit_into_its_models_context() -> None:
    async with model_server() as model:
        for context, tokens in ((200_000, REFLECTION_TOKENS), (8_192, small_reflection(8_192))):
            reflector = ModelReflector(model_at("m", Endpoint(model.url, context_tokens=context)))
            assert await reflector.batch_tokens() == tokens
            await reflector.close()
