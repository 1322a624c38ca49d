"""The tool `recall_memory` in requests: where it goes, who gets it, and what is put back of its earlier calls."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.config.gateway_rules import Senders, read_rules, read_senders, read_switch
from esker.server.core.config.settings import Settings
from esker.server.core.errors import InvalidInput
from esker.server.gateway.hidden_calls import RecentCalls, with_hidden
from esker.server.gateway.identity import identified
from esker.server.gateway.prompts import without_middle
from esker.server.gateway.protocols.messages import MESSAGES
from esker.server.gateway.protocols.responses import RESPONSES
from esker.server.gateway.reading import ModelRequest, read_request
from esker.server.gateway.recall_tool import with_tool
from esker.server.gateway.recalling import with_end
from esker.server.gateway.records import Caller, Protocol
from esker.server.gateway.server_sent_events import EventReader

BASH: dict[str, Any] = {"name": "Bash"}
REQUESTS: dict[str, dict[str, Any]] = {
    "messages": {"messages": [{"role": "user", "content": "Hi."}], "tools": [BASH]},
    "responses": {"input": [{"role": "user", "content": "Hi."}], "store": False, "tools": [BASH]},
    "chat": {"messages": [{"role": "user", "content": "Hi."}], "tools": [{"function": BASH}]},
    "gemini": {"contents": [{"parts": [{"text": "Hi."}]}], "tools": [{"functionDeclarations": [BASH]}]},
}


@pytest.mark.parametrize("name", REQUESTS)
def test_the_tool_is_the_last_one_and_every_other_character_stays(name: str) -> None:
    text = json.dumps(REQUESTS[name], indent=1)
    longer = with_tool(name, text)
    assert longer is not None
    tools = json.loads(longer)["tools"]
    own = (tools[0]["functionDeclarations"] if name == "gemini" else tools)[1]
    assert longer.replace(f",{json.dumps(own)}", "") == text


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("messages", {"tools": [BASH, {"name": "mcp__esker__recall_memory"}]}),
        ("messages", {"tools": []}),
        ("messages", {"messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "The"}]}),
        ("responses", {"tools": [{"type": "namespace", "name": "esker", "tools": [{"name": "recall_memory"}]}]}),
        ("responses", {"input": [{"type": "additional_tools", "tools": [{"name": "recall_memory"}]}]}),
        ("responses", {"store": True}),
        ("responses", {"previous_response_id": "resp_1"}),
        ("chat", {"tools": [{"function": {"name": "esker_recall_memory"}}]}),
        ("chat", {"n": 2}),
        ("chat", {"messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "The"}]}),
        ("gemini", {"tools": [{"functionDeclarations": [{"name": "recall_memory"}]}]}),
        ("gemini", {"tools": [{"googleSearch": {}}]}),
        ("gemini", {"generationConfig": {"candidateCount": 2}}),
        ("gemini", {"contents": [{"parts": [{"text": "Hi."}]}, {"role": "model", "parts": [{"text": "The"}]}]}),
    ],
)
def test_a_request_gets_no_tool_that_it_has_or_whose_call_could_not_be_answered(
    name: str, changed: dict[str, Any]
) -> None:
    assert with_tool(name, json.dumps(REQUESTS[name] | changed)) is None


def model_request(protocol: Protocol, document: dict[str, Any]) -> ModelRequest:
    """Return a request as the gateway reads it."""
    conversation = protocol.read_request(document)
    turns = identified(conversation.turns)
    return ModelRequest(
        protocol, json.dumps(document), conversation, Caller("mine"), "manage", recall=True, turns=turns
    )


def conversation(rounds: int) -> list[dict[str, Any]]:
    """Return rounds of a prompt and an answer."""
    return [
        {"role": role, "content": [{"type": "text", "text": f"{role} {number}"}]}
        for number in range(rounds)
        for role in ("user", "assistant")
    ]


HIDDEN: list[Any] = [{"role": "assistant", "content": "call"}, {"role": "user", "content": "result"}]
WRITTEN = [json.dumps(item) for item in HIDDEN]


def test_hidden_calls_come_back_before_their_answer_and_the_turns_know_where_they_are() -> None:
    request = model_request(MESSAGES, {"messages": conversation(8)})
    found = with_hidden(request, {3: WRITTEN, 11: WRITTEN})
    history = json.loads(found.text)["messages"]
    assert history == [*conversation(8)[:3], *HIDDEN, *conversation(8)[3:11], *HIDDEN, *conversation(8)[11:]]
    moved = found.turns
    assert moved == identified(found.conversation.turns)
    assert [history[turn.item]["content"][0]["text"] for turn in moved] == [
        each["content"][0]["text"] for each in conversation(8)
    ]
    # The mode `manage` leaves those out whose answers it leaves out.
    cut = json.loads(without_middle(MESSAGES, found.text, moved, 10))["messages"]
    assert cut == [conversation(8)[0], conversation(8)[10], *HIDDEN, *conversation(8)[11:]]


def test_a_hidden_call_comes_before_the_reasoning_of_its_answer() -> None:
    items = [
        {"type": "message", "role": "user", "content": "Hi."},
        {"type": "message", "role": "developer", "content": "Be brief."},
        {"type": "reasoning", "encrypted_content": "x"},
        {"type": "message", "role": "assistant", "content": "Hello."},
    ]
    request = model_request(RESPONSES, {"input": items})
    found = json.loads(with_hidden(request, {1: WRITTEN}).text)["input"]
    assert found == [*items[:2], *HIDDEN, *items[2:]]


def test_what_was_hidden_longest_ago_is_forgotten_first() -> None:
    calls = RecentCalls(most_bytes=800)
    for place in "abac":
        calls.note(place, WRITTEN)
    assert [calls.at(place) for place in "abc"] == [WRITTEN, None, WRITTEN]


def test_half_a_character_in_a_hidden_call_is_sent_back_as_it_came() -> None:
    request = model_request(MESSAGES, {"messages": conversation(2)})
    half: dict[str, Any] = {"role": "assistant", "content": "\ud83d"}
    put_back = with_hidden(request, {1: [json.dumps(half)]}).text.encode()
    assert json.loads(put_back)["messages"][1] == half
    assert json.loads(with_end("messages", request.text, [half]).encode())["messages"][-1] == half


@given(st.lists(st.sampled_from([b'data: {"a": 1}', b"event: x\r\ndata: {}", b": ping", b"data: [DONE]"])), st.data())
def test_events_are_the_same_in_whatever_chunks_they_come(events: list[bytes], data: st.DataObject) -> None:
    body = b"".join(event + b"\n\n" for event in events)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=5)))
    reader = EventReader()
    chunks = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    found = [event for chunk in chunks for event in reader.feed(chunk)]
    assert [event.raw for event in (*found, *reader.rest())] == [event + b"\n\n" for event in events]


def test_the_setting_names_all_senders_none_or_some() -> None:
    assert read_senders("on") == (Senders("*", None),)
    assert read_senders("Off") == read_senders("") == ()
    some = read_senders("codex, claude-code@acme/*")
    assert [any(each.applies(*who) for each in some) for who in (("codex", None), ("claude-code", "acme/shop"))] == [
        True,
        True,
    ]
    assert not any(each.applies("claude-code", "other/shop") for each in some)
    with pytest.raises(ValueError, match="client@project"):
        read_senders("codex=on")


@pytest.mark.parametrize(
    ("rules", "usual", "asked", "expected"),
    [
        ("codex=pack, *=manage", "on", "", True),
        ("codex=pack, *=manage+recall", "", "", True),
        ("*@acme/*=manage-recall, *=pack", "mine", "", False),
        ("*=manage-recall", "on", "on", True),
        ("*=pack+recall", "", "off", False),
        ("codex=pack+recall", "", "", False),
    ],
)
def test_the_tool_is_offered_as_the_sender_asks_else_by_its_rule_else_by_the_setting(
    rules: str, usual: str, asked: str, expected: bool
) -> None:
    settings = Settings.from_environment({"ESKER_GATEWAY_RULES": rules, "ESKER_GATEWAY_RECALL": usual})
    headers = {"x-esker-client": "mine", "x-esker-project": "acme/shop", "x-esker-recall": asked}
    read = read_request(MESSAGES, headers, json.dumps(REQUESTS["messages"]).encode(), settings, tuple)
    assert read.recall is expected


@pytest.mark.parametrize("rule", ["codex=recall", "codex=pack+", "codex=+recall", "=pack+recall"])
def test_a_rule_without_a_client_or_a_mode_is_refused(rule: str) -> None:
    with pytest.raises(ValueError, match="client=mode"):
        read_rules(rule)


def test_a_sender_that_asks_for_neither_on_nor_off_is_refused() -> None:
    assert [read_switch(text) for text in ("", " ON ", "off")] == [None, True, False]
    with pytest.raises(InvalidInput, match="on or off"):
        read_switch("yes")
