"""The protocols of language models over a real socket: the requests, and what is made of each kind of answer."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from esker.server.core.errors import (
    ContextExceeded,
    ModelDown,
    ModelFailed,
    ModelTooSlow,
    RequestRefused,
    UnusableAnswer,
)
from esker.server.core.records import TokenUse
from esker.server.providers import bounded_answers
from esker.server.providers.answer_schema import schema_of
from esker.server.providers.answers import read_answer
from esker.server.providers.endpoints import Endpoint, Protocol
from esker.server.providers.language_model import Answered, Content, LanguageModel, ModelReply
from esker.server.providers.language_models import model_at, probe
from esker.server.providers.model_observer import ObserverAnswer
from tests.support.model_server import ModelServer, ScriptedAnswer, model_server
from tests.support.serving import serving_app

PROTOCOLS: list[Protocol] = ["messages", "chat"]
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


class Colour(BaseModel):
    """The shape that is asked for."""

    colour: str
    shade: str | None = None


@dataclass
class Counted:
    """Allows every call, and keeps the token use of each."""

    used: list[TokenUse] = field(default_factory=list[TokenUse])

    async def reserve(self, model: str, most: TokenUse) -> str:
        """Allow it."""
        return ""

    async def settle(self, call: str, model: str, used: TokenUse | None) -> None:
        """Keep it."""
        if used is not None:
            self.used.append(used)


@pytest.fixture
async def model() -> AsyncGenerator[ModelServer]:
    """A scripted model."""
    async with model_server() as server:
        server.say({"colour": "red"})
        yield server


@asynccontextmanager
async def at(url: str, protocol: Protocol, **more: Any) -> AsyncIterator[LanguageModel]:
    """Yield a model of the server at an address."""
    asked = model_at("m", Endpoint(url, protocol=protocol, **more))
    try:
        yield asked
    finally:
        await asked.close()


def red(reply: ModelReply) -> str:
    """Read a colour."""
    if reply.cut_off:
        raise ValueError("it was cut off")
    return read_answer(reply.text, Colour).colour


async def asked_for(
    model: LanguageModel, meter: Counted | None = None, content: Content | None = None
) -> Answered[str]:
    """Ask a model for a colour."""
    given: Content = content or [{"type": "text", "text": "Which colour?"}, {"type": "text", "text": "Say it."}]
    return await model.ask("Name a colour.", given, Colour, red, max_tokens=50, meter=meter or Counted())


# Requests -------------------------------------------------------------------------------------------------------------


async def test_a_chat_request_has_the_instructions_the_words_and_a_strict_schema(model: ModelServer) -> None:
    async with at(model.url, "chat", api_key="sk-1") as chat:
        assert (await asked_for(chat)).value == "red"
    [asked] = model.asked
    assert asked["messages"] == [
        {"role": "system", "content": "Name a colour."},
        {"role": "user", "content": "Which colour?\n\nSay it."},
    ]
    form = asked["response_format"]
    assert (form["type"], form["json_schema"]["strict"]) == ("json_schema", True)
    assert form["json_schema"]["schema"] == schema_of(Colour)
    assert (asked["model"], asked["max_tokens"]) == ("m", 50)
    assert model.headers[0]["authorization"] == "Bearer sk-1"


@pytest.mark.parametrize(("mode", "key"), [("json", "response_format"), ("tool", "tools"), ("prompt", None)])
async def test_each_way_to_ask_for_the_shape_sends_the_schema_once(
    model: ModelServer, mode: str, key: str | None
) -> None:
    async with at(model.url, "chat", structured=mode) as chat:
        assert (await asked_for(chat)).value == "red"
    [asked] = model.asked
    assert asked.keys() & {"response_format", "tools", "tool_choice"} >= ({key} if key else set())
    assert ("response_format" in asked) == (mode == "json")
    assert json.dumps(asked).count("additionalProperties") == 1


@pytest.mark.parametrize(
    ("given", "path"),
    [("{}", "/v1"), ("{}/", "/v1"), ("{}/v1", "/v1"), ("{}/v1/", "/v1"), ("{}/v1/chat/completions", "/v1")],
)
async def test_a_base_url_may_be_written_in_every_usual_way(model: ModelServer, given: str, path: str) -> None:
    async with at(given.format(model.url), "chat") as chat:
        assert (await asked_for(chat)).value == "red"


async def test_a_base_url_with_another_path_is_taken_as_it_is() -> None:
    asked = Endpoint("https://example.test/v1beta/openai", protocol="chat")
    assert asked.chat_url == "https://example.test/v1beta/openai"
    assert Endpoint(None, protocol="chat").chat_url == "https://api.openai.com/v1"
    assert Endpoint("http://localhost:11434/v1").messages_url == "http://localhost:11434"


async def test_openais_own_settings_in_the_environment_are_not_sent_to_another_server(
    model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    async with at(model.url, "chat") as chat:
        await asked_for(chat)
    assert not {value for value in model.headers[0].values() if value in ("org-1", "proj-1", "Bearer sk-secret")}


async def test_an_image_is_sent_in_the_form_of_the_protocol(model: ModelServer) -> None:
    async with at(model.url, "chat") as chat:
        await asked_for(chat, content=[{"type": "text", "text": "See"}, IMAGE])
    content = model.asked[0]["messages"][1]["content"]
    assert content[1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def test_a_schema_has_no_titles_defaults_bounds_or_references_and_requires_everything() -> None:
    schema = json.dumps(schema_of(ObserverAnswer))
    for word in ("title", "default", "minLength", "maxLength", "minItems", "$ref", "$defs", "description", "format"):
        assert f'"{word}"' not in schema
    fact = schema_of(ObserverAnswer)["properties"]["facts"]["items"]
    assert fact["required"] == list(fact["properties"])
    assert fact["additionalProperties"] is False


# Answers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_bad_answer_is_sent_back_once_with_its_problem(model: ModelServer, protocol: Protocol) -> None:
    model.say("red, I think", {"colour": "red"})
    meter = Counted()
    async with at(model.url, protocol) as asked:
        answered = await asked_for(asked, meter)
    assert answered.value == "red"
    mine, complaint = model.asked[1]["messages"][-2:]
    assert (mine["role"], mine["content"]) == ("assistant", "red, I think")
    assert complaint["content"].startswith("That answer cannot be used: not a JSON object")
    # Both calls are counted, and the answer has the use of both.
    assert meter.used == [TokenUse(100, 20, cache_read_tokens=7)] * 2
    assert answered.used == TokenUse(200, 40, cache_read_tokens=14)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_an_answer_that_reached_its_length_is_reported_as_cut_off(model: ModelServer, protocol: Protocol) -> None:
    model.say(ScriptedAnswer('{"colour": "re', stop_reason="max_tokens"))
    async with at(model.url, protocol) as asked:
        with pytest.raises(UnusableAnswer, match="it was cut off"):
            await asked_for(asked)
    assert len(model.asked) == 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_refusal_is_counted_and_not_sent_back(model: ModelServer, protocol: Protocol) -> None:
    model.say(ScriptedAnswer("I will not.", stop_reason="refusal"))
    meter = Counted()
    async with at(model.url, protocol) as asked:
        with pytest.raises(UnusableAnswer, match="refused"):
            await asked_for(asked, meter)
    assert (len(model.asked), len(meter.used)) == (1, 1)


async def test_a_content_filter_is_a_refusal(model: ModelServer) -> None:
    model.say(completion({"role": "assistant", "content": ""}, finish_reason="content_filter"))
    async with at(model.url, "chat") as chat:
        with pytest.raises(UnusableAnswer, match="refused"):
            await asked_for(chat)


async def test_the_input_of_our_tool_is_the_answer(model: ModelServer) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "answer", "arguments": '{"colour": "blue"}'}}
    model.say(completion({"role": "assistant", "content": None, "tool_calls": [call]}))
    async with at(model.url, "chat", structured="tool") as chat:
        assert (await asked_for(chat)).value == "blue"


@pytest.mark.parametrize(
    ("usage", "used"),
    [
        (None, TokenUse()),
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}, TokenUse(10, 5)),
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 40}, TokenUse(10, 30)),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9}},
            TokenUse(1, 5, cache_read_tokens=9),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "prompt_cache_hit_tokens": 4},
            TokenUse(6, 5, cache_read_tokens=4),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 99}},
            TokenUse(0, 5, cache_read_tokens=10),
        ),
        ({"prompt_tokens": "many", "completion_tokens": -5, "total_tokens": [], "x": {}}, TokenUse()),
        ("nothing", TokenUse()),
        ([], TokenUse()),
    ],
)
async def test_tokens_are_counted_with_those_from_the_cache_apart(
    model: ModelServer, usage: Any, used: TokenUse
) -> None:
    model.say(completion({"role": "assistant", "content": '{"colour": "red"}'}, usage=usage))
    meter = Counted()
    async with at(model.url, "chat") as chat:
        assert (await asked_for(chat, meter)).value == "red"
    assert meter.used == [used]


def completion(message: Any, **more: Any) -> ScriptedAnswer:
    """Return a chat completion with this message."""
    choice = {"index": 0, "message": message, "finish_reason": more.pop("finish_reason", "stop")}
    return ScriptedAnswer(
        raw=json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]} | more)
    )


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"choices": []}',
        '{"choices": [null]}',
        '{"choices": "x"}',
        '{"choices": [{"message": null}]}',
        '{"choices": [{"message": {"content": 5}}]}',
        '{"choices": [{"message": "text"}]}',
        '{"object": "chat.completion", "choices": {"a": 1}}',
        "<html>nginx</html>",
        "[" * 100_000,
    ],
)
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_body_that_is_no_answer_is_a_failure(model: ModelServer, protocol: Protocol, raw: str) -> None:
    model.say(ScriptedAnswer(raw=raw))
    async with at(model.url, protocol) as asked:
        with pytest.raises(ModelFailed):
            await asked_for(asked)
    assert len(model.asked) <= 2


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 429, "message": "Rate limited upstream"}, ModelDown),
        ({"code": 502, "message": "Provider returned error"}, ModelDown),
        ({"code": 400, "message": "response_format is not supported"}, RequestRefused),
        ({"code": 400, "message": "This endpoint's maximum context length is 8192 tokens"}, ContextExceeded),
        ({"code": "weird", "message": "?"}, ModelDown),
        ("busy", ModelDown),
        (["busy"], ModelDown),
    ],
)
async def test_an_error_in_the_body_of_a_200_is_an_error(
    model: ModelServer, error: Any, kind: type[ModelFailed]
) -> None:
    model.say(ScriptedAnswer(raw=json.dumps({"error": error, "user_id": "u"})))
    async with at(model.url, "chat") as chat:
        with pytest.raises(ModelFailed) as raised:
            await asked_for(chat)
    assert type(raised.value) is kind


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, "request (6024 tokens) exceeds the available context size (4096 tokens)", ContextExceeded),
        (400, "This model's maximum context length is 8192 tokens. Please reduce the length.", ContextExceeded),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", ContextExceeded),
        (413, "Request too large for model on tokens per minute (TPM)", ContextExceeded),
        (400, "Invalid schema for response_format", RequestRefused),
        (422, "max_tokens: extra fields not permitted", RequestRefused),
        (401, "Incorrect API key", ModelDown),
        (404, "model 'x' not found", ModelDown),
        (409, "conflict", ModelFailed),
    ],
)
async def test_an_error_status_is_about_the_request_its_length_the_server_or_the_key(
    model: ModelServer, protocol: Protocol, status: int, message: str, kind: type[ModelFailed]
) -> None:
    # The clients retry some statuses; a pause of no length.
    model.say(ScriptedAnswer(message, status=status, headers={"retry-after-ms": "1"}))
    async with at(model.url, protocol) as asked:
        with pytest.raises(ModelFailed, match=str(status)) as raised:
            await asked_for(asked)
    assert type(raised.value) is kind


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_model_without_sight_refuses_the_image_whatever_its_status(
    model: ModelServer, protocol: Protocol
) -> None:
    model.say(ScriptedAnswer("image input is not supported", status=500, headers={"retry-after-ms": "1"}))
    async with at(model.url, protocol) as asked:
        with pytest.raises(RequestRefused):
            await asked_for(asked, content=[{"type": "text", "text": "See"}, IMAGE])
        with pytest.raises(ModelDown):
            await asked_for(asked)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_busy_server_is_asked_again_after_the_pause_it_names(model: ModelServer, protocol: Protocol) -> None:
    model.say(ScriptedAnswer(status=429, headers={"retry-after-ms": "1"}), ScriptedAnswer('{"colour": "red"}'))
    async with at(model.url, protocol) as asked:
        assert (await asked_for(asked)).value == "red"
    assert len(model.asked) == 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_call_that_hangs_is_given_up_and_counted_at_its_most(model: ModelServer, protocol: Protocol) -> None:
    model.say(ScriptedAnswer("{}", wait_for=asyncio.Event()))
    meter = Counted()
    async with at(model.url, protocol, timeout=0.2) as asked:
        with pytest.raises(ModelTooSlow):
            await asked_for(asked, meter)
    [used] = meter.used
    assert (used.output_tokens, used.input_tokens > 10) == (50, True)


async def test_a_server_that_is_not_there_is_down() -> None:
    for protocol in PROTOCOLS:
        async with at("http://127.0.0.1:1", protocol) as asked:
            with pytest.raises(ModelDown, match="cannot be reached"):
                await asked_for(asked)


# Servers that send too much -------------------------------------------------------------------------------------------


@dataclass
class Endless:
    """A server that never ends its answer."""

    sent: int = 0
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, _: Request) -> StreamingResponse:
        """Send blanks until nobody reads them."""

        async def blanks() -> AsyncIterator[bytes]:
            try:
                while True:
                    self.sent += 65_536
                    yield b" " * 65_536
                    # Let the disconnection be seen.
                    await asyncio.sleep(0)
            finally:
                self.closed.set()

        return StreamingResponse(blanks(), media_type="application/json")


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_an_endless_answer_is_cut_off_at_a_limit_and_asked_for_once(
    protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_answers, "MOST_BYTES", 1_000_000)
    server = Endless()
    routes = [Route("/v1/messages", server.answer, methods=["POST"])]
    routes += [Route("/v1/chat/completions", server.answer, methods=["POST"])]
    async with serving_app(Starlette(routes=routes)) as url, at(url, protocol) as asked:
        with pytest.raises(ModelFailed, match="returned something that is not"):
            await asked_for(asked)
        await asyncio.wait_for(server.closed.wait(), 60)
    assert server.sent < 20_000_000


# Whether a server can be used -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("status", "problem"),
    [(200, None), (401, "it rejects the key (401)."), (403, "it rejects the key (403)."), (404, None)],
)
async def test_a_probe_says_whether_the_server_takes_the_key(
    protocol: Protocol, status: int, problem: str | None
) -> None:
    async def models(_: Request) -> JSONResponse:
        return JSONResponse({"object": "list", "data": []}, status)

    async with serving_app(Starlette(routes=[Route("/v1/models", models)])) as url:
        assert await probe(Endpoint(url, protocol=protocol)) == problem
