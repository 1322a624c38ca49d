"""The scripted model of `make clients` says what its script says in every protocol that a client may speak."""

import json
from collections.abc import Generator
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.clients.model.server import ModelAsked, scripted_model

RECALL = "mcp__esker__recall_memory"


@pytest.fixture(scope="module")
def model() -> Generator[ModelAsked]:
    """A running model."""
    with scripted_model() as running:
        yield running


def messages(prompt: str) -> Any:
    """Return a request of the Messages API."""
    said = [{"role": "user", "content": prompt}]
    return "/v1/messages", {"model": "m", "messages": said, "tools": [{"name": RECALL, "input_schema": {}}]}


def responses(prompt: str) -> Any:
    """Return a request of the Responses API."""
    return "/v1/responses", {"model": "m", "input": prompt, "tools": [{"type": "function", "name": RECALL}]}


def chat(prompt: str) -> Any:
    """Return a request for a chat completion."""
    tool = {"type": "function", "function": {"name": RECALL}}
    return "/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": prompt}], "tools": [tool]}


def gemini(prompt: str) -> Any:
    """Return a request of the Gemini API."""
    said = [{"role": "user", "parts": [{"text": prompt}]}]
    path = "/v1beta/models/m:streamGenerateContent?alt=sse"
    return path, {"contents": said, "tools": [{"functionDeclarations": [{"name": RECALL}]}]}


PROTOCOLS = [messages, responses, chat, gemini]


def answer(model: ModelAsked, path: str, body: dict[str, Any]) -> str:
    """Return the whole streamed answer."""
    request = Request(model.url + path, json.dumps(body | {"stream": True}).encode())
    with urlopen(request) as answered:
        return answered.read().decode()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_model_says_the_words_of_its_prompt(model: ModelAsked, protocol: Any) -> None:
    assert "good morning" in answer(model, *protocol("Please SAY good morning"))
    assert model.said[-1].text == "good morning"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_model_calls_recall_with_the_words_of_its_prompt(model: ModelAsked, protocol: Any) -> None:
    printed = answer(model, *protocol("CALLRECALL harbor branch"))
    assert RECALL in printed
    assert "harbor branch" in printed
    assert model.said[-1].arguments == {"query": "harbor branch"}


def test_words_of_a_hook_around_the_prompt_are_not_the_prompt(model: ModelAsked) -> None:
    around = "<hook_context><local_observations>SAY from a pack</local_observations></hook_context>"
    answer(model, *gemini(f"{around}\nSAY from the user"))
    assert model.said[-1].text == "from the user"


def test_a_tool_that_was_loaded_is_called_though_the_client_says_so_beside_it(model: ModelAsked) -> None:
    path, body = messages("CALLRECALL harbor branch")
    loaded = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "tool_reference", "tool_name": RECALL}]}
    call = {"type": "tool_use", "id": "t", "name": "ToolSearch", "input": {}}
    body["messages"] += [
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [loaded, {"type": "text", "text": "Tool loaded."}]},
    ]
    answer(model, path, body)
    assert (model.said[-1].tool, model.said[-1].arguments) == (RECALL, {"query": "harbor branch"})
