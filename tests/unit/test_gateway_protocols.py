"""The protocols of the gateway: where the pack goes, and what is read of requests and answers."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.json_input import Json
from esker.server.core.records import TokenUse
from esker.server.gateway.identity import identified
from esker.server.gateway.json_spans import items, members, with_item
from esker.server.gateway.protocols import protocol_of
from esker.server.gateway.protocols.chat import CHAT
from esker.server.gateway.protocols.gemini import GEMINI
from esker.server.gateway.protocols.messages import MESSAGES
from esker.server.gateway.protocols.responses import RESPONSES
from esker.server.gateway.records import Protocol
from esker.server.gateway.server_sent_events import read_events

PACK = '<global_observations>\n* "quoted" ü\n</global_observations>'
MARK = {"cache_control": {"type": "ephemeral"}}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
writers = st.sampled_from([{"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}, {}])


@given(st.dictionaries(st.text(max_size=6), json_values, max_size=5), writers)
def test_spans_are_where_the_values_of_a_document_are(document: dict[str, Json], writing: dict[str, Any]) -> None:
    text = json.dumps(document, **writing)
    found = members(text)
    assert {name: json.loads(text[span.start : span.end]) for name, span in found.items()} == document


@given(st.lists(json_values, max_size=5), st.integers(0, 6), json_values, writers)
def test_an_item_is_put_in_and_every_other_character_stays(
    values: list[Json], index: int, item: Json, writing: dict[str, Any]
) -> None:
    text = json.dumps({"before": 1.0, "list": values, "after": [1e5]}, **writing)
    start = members(text)["list"].start
    longer = with_item(text, start, index, item)
    place = min(index, len(values))
    assert json.loads(longer)["list"] == [*values[:place], item, *values[place:]]
    kept = [longer[span.start : span.end] for at, span in enumerate(items(longer, start)) if at != place]
    assert kept == [text[span.start : span.end] for span in items(text, start)]
    assert longer[:start] == text[:start]
    tail = text.index('"after"')
    assert longer.endswith(text[tail:])


@pytest.mark.parametrize("text", ["", "[]", "7", '{"a": 1, "a": 2}', '{"a" 1}', '{"a": 1', '{"a": 1 "b": 2}', "{1: 2}"])
def test_a_text_that_is_no_plain_object_has_no_spans(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the gateway passes such a request on whatever it says
        members(text)


def with_pack(protocol: Protocol, document: dict[str, Any]) -> dict[str, Any]:
    """Return a request with the pack."""
    text = protocol.with_pack(json.dumps(document), PACK)
    assert text is not None
    return json.loads(text)


ASKED = {"role": "user", "content": "Hi."}
BLOCK = {"type": "text", "text": PACK}


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        (None, [BLOCK | MARK]),
        ("Be brief.", [{"type": "text", "text": "Be brief."}, BLOCK | MARK]),
        ([{"type": "text", "text": "A"}], [{"type": "text", "text": "A"}, BLOCK | MARK]),
        (
            [{"type": "text", "text": "A"}, {"type": "text", "text": "B"} | MARK],
            [{"type": "text", "text": "A"}, BLOCK, {"type": "text", "text": "B"} | MARK],
        ),
        ([{"type": "text", "text": "A"} | MARK], [{"type": "text", "text": "A"} | MARK, BLOCK]),
    ],
)
def test_the_pack_is_inside_the_cached_part_of_the_system_prompt(system: Json, expected: Json) -> None:
    document = {"model": "m", "messages": [ASKED]} | ({"system": system} if system is not None else {})
    found = with_pack(MESSAGES, document)
    assert found["system"] == expected
    assert {name: found[name] for name in document if name != "system"} == {
        name: document[name] for name in document if name != "system"
    }


def test_the_pack_is_behind_the_clients_prompt_where_a_mark_of_the_conversation_covers_it() -> None:
    system = [{"type": "text", "text": "A"}, {"type": "text", "text": "B"} | MARK, {"type": "text", "text": "C"}]
    marked = {"role": "user", "content": [{"type": "text", "text": "Hi."} | MARK]}
    found = with_pack(MESSAGES, {"system": system, "messages": [marked, ASKED]})
    assert found["system"] == [*system[:2], BLOCK, system[2]]
    assert with_pack(MESSAGES, {"system": system, "messages": [ASKED], **MARK})["system"] == found["system"]


def test_the_pack_takes_no_breakpoint_more_than_the_api_accepts() -> None:
    tools = [{"name": str(n), **MARK} for n in range(4)]
    found = with_pack(MESSAGES, {"messages": [ASKED], "system": "Be brief.", "tools": tools})
    assert found["system"][1] == BLOCK

    found = with_pack(MESSAGES, {"messages": [ASKED], "system": "Be brief.", "tools": tools[1:], **MARK})
    assert found["system"][1] == BLOCK


def test_the_breakpoint_of_the_pack_lasts_as_long_as_one_behind_it() -> None:
    lasting = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    asked = {"role": "user", "content": [{"type": "text", "text": "Hi.", **lasting}]}
    for document in ({"messages": [asked]}, {"messages": [ASKED], **lasting}):
        assert with_pack(MESSAGES, document)["system"] == [BLOCK | lasting]
    tools = [{"name": "ls", **lasting}]
    assert with_pack(MESSAGES, {"messages": [ASKED], "tools": tools})["system"] == [BLOCK | MARK]


def test_the_responses_api_gets_the_pack_as_its_first_item() -> None:
    item = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": PACK}]}
    assert with_pack(RESPONSES, {"input": [ASKED]})["input"] == [item, ASKED]
    assert with_pack(RESPONSES, {"input": "Hi."})["input"] == [item, {"type": "message", **ASKED}]
    assert with_pack(RESPONSES, {"input": []})["input"] == [item]


def test_a_stored_answer_that_is_continued_has_the_pack_already() -> None:
    assert RESPONSES.with_pack(json.dumps({"input": [ASKED], "previous_response_id": "resp_1"}), PACK) is None
    assert RESPONSES.with_pack(json.dumps({"input": [ASKED], "conversation": {"id": "conv_1"}}), PACK) is None
    assert RESPONSES.with_pack(json.dumps({"input": [ASKED], "previous_response_id": None}), PACK) is not None


@pytest.mark.parametrize("name", ["cachedContent", "cached_content"])
def test_an_instruction_beside_cached_content_would_be_refused(name: str) -> None:
    contents = [{"role": "user", "parts": [{"text": "Hi."}]}]
    assert GEMINI.with_pack(json.dumps({"contents": contents, name: "cachedContents/1"}), PACK) is None


def test_chat_completions_get_the_pack_behind_the_system_messages() -> None:
    rules = {"role": "developer", "content": "Be brief."}
    assert with_pack(CHAT, {"messages": [rules, ASKED]})["messages"] == [
        rules,
        {"role": "developer", "content": PACK},
        ASKED,
    ]
    assert with_pack(CHAT, {"messages": [ASKED]})["messages"] == [{"role": "system", "content": PACK}, ASKED]


@pytest.mark.parametrize("name", ["systemInstruction", "system_instruction"])
def test_gemini_gets_the_pack_as_the_last_part_of_its_instruction(name: str) -> None:
    contents = [{"role": "user", "parts": [{"text": "Hi."}]}]
    found = with_pack(GEMINI, {"contents": contents, name: {"parts": [{"text": "A"}]}})
    assert found[name]["parts"] == [{"text": "A"}, {"text": PACK}]
    assert (
        with_pack(GEMINI, {"contents": contents, name: {"parts": {"text": "A"}}})[name]["parts"] == found[name]["parts"]
    )
    assert with_pack(GEMINI, {"contents": contents})["systemInstruction"] == {"parts": [{"text": PACK}]}


@pytest.mark.parametrize("protocol", [MESSAGES, RESPONSES, CHAT, GEMINI])
@pytest.mark.parametrize("document", [{}, {"messages": 1, "input": 1, "contents": 1, "system": 1}, {"n": [1]}])
def test_a_request_of_another_form_gets_no_pack(protocol: Protocol, document: dict[str, Any]) -> None:
    text = protocol.with_pack(json.dumps(document), PACK)
    if protocol is GEMINI and "contents" in document:
        assert text is not None
    else:
        assert text is None


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("v1/messages", "messages"),
        ("v1/responses", "responses"),
        ("backend-api/codex/responses", "responses"),
        ("v1/chat/completions", "chat"),
        ("v1beta/models/gemini-3.8-flash:streamGenerateContent", "gemini"),
        ("v1/messages/count_tokens", None),
        ("v1/messages/batches", None),
        ("v1/models", None),
        ("v1beta/models/gemini-3.8-flash:countTokens", None),
        ("v1/embeddings", None),
    ],
)
def test_only_conversations_are_read(path: str, name: str | None) -> None:
    found = protocol_of(path)
    assert (found.name if found else None) == name


CALL = {"type": "tool_use", "id": "call_1", "name": "Bash", "input": {"command": "ls"}}
SAID = [
    ("user", [{"type": "text", "text": "Which files?"}]),
    ("assistant", [{"type": "text", "text": "I look."}, CALL]),
]
RESULT = ("user", [{"type": "tool_result", "tool_use_id": "call_1", "content": "cart.py"}])
ARGUMENTS = json.dumps({"command": "ls"})


def test_each_protocol_says_the_same_conversation() -> None:
    requests: dict[Protocol, dict[str, Any]] = {
        MESSAGES: {"messages": [{"role": role, "content": content} for role, content in [*SAID, RESULT]]},
        CHAT: {
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Which files?"},
                {
                    "role": "assistant",
                    "content": "I look.",
                    "tool_calls": [
                        {"id": "call_1", "type": "function", "function": {"name": "Bash", "arguments": ARGUMENTS}}
                    ],
                },
                {"role": "tool", "tool_call_id": "call_1", "content": "cart.py"},
            ]
        },
        RESPONSES: {
            "input": [
                {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
                {"role": "user", "content": [{"type": "input_text", "text": "Which files?"}]},
                {"type": "reasoning", "encrypted_content": "x"},
                {"role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
                {"type": "function_call", "call_id": "call_1", "name": "Bash", "arguments": ARGUMENTS},
                {"type": "function_call_output", "call_id": "call_1", "output": "cart.py"},
            ]
        },
        GEMINI: {
            "contents": [
                {"role": "user", "parts": [{"text": "Which files?"}]},
                {
                    "role": "model",
                    "parts": [
                        {"text": "I look."},
                        {"functionCall": {"id": "call_1", "name": "Bash", "args": {"command": "ls"}}},
                    ],
                },
                {
                    "role": "user",
                    "parts": [
                        {"functionResponse": {"id": "call_1", "name": "Bash", "response": {"output": "cart.py"}}}
                    ],
                },
            ]
        },
    }
    for protocol, document in requests.items():
        turns = protocol.read_request(document).turns
        blocks = [(turn.role, block) for turn in turns for block in turn.content]
        expected = [(role, block) for role, content in [*SAID, RESULT] for block in content]
        assert blocks == expected, protocol.name


def events(*documents: dict[str, Any]) -> bytes:
    """Return documents as server-sent events, the last one as OpenAI ends a stream."""
    return b"".join(f"data: {json.dumps(each)}\r\n\r\n".encode() for each in documents) + b"data: [DONE]\n\n"


def chat_stream() -> bytes:
    """Return an answer of chat completions in pieces."""

    def chunk(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"id": "c1", "model": "gpt", "choices": [{"index": 0, "delta": delta, "finish_reason": None, **more}]}

    call = {"index": 0, "id": "call_1", "function": {"name": "Bash", "arguments": ""}}
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 2}}
    return events(
        chunk({"role": "assistant", "content": "I "}),
        chunk({"content": "look."}),
        chunk({"tool_calls": [call]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": ARGUMENTS[:5]}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": ARGUMENTS[5:]}}]}),
        chunk({}, finish_reason="tool_calls"),
        {"id": "c1", "model": "gpt", "choices": [], "usage": usage},
    )


def responses_stream(*, repeats: bool) -> bytes:
    """Return an answer of the Responses API; some servers repeat its items at the end."""
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]}
    call = {"type": "function_call", "call_id": "call_1", "name": "Bash", "arguments": ARGUMENTS}
    usage = {"input_tokens": 9, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 2}}
    last = {"id": "c1", "model": "gpt", "usage": usage, "output": [message, call] if repeats else []}
    return events(
        {"type": "response.created", "response": {"id": "c1", "model": "gpt", "output": []}},
        {"type": "response.output_text.delta", "delta": "I look."},
        {"type": "response.output_item.done", "item": message},
        {"type": "response.output_item.done", "item": call},
        {"type": "response.completed", "response": last},
    )


def gemini_stream() -> bytes:
    """Return an answer of Gemini in pieces."""

    def part(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"responseId": "c1", "modelVersion": "gpt", "candidates": [{"content": {"parts": [*parts]}, **more}]}

    usage = {"promptTokenCount": 9, "candidatesTokenCount": 3, "thoughtsTokenCount": 1, "cachedContentTokenCount": 2}
    call = {"functionCall": {"id": "call_1", "name": "Bash", "args": {"command": "ls"}}}
    return events(
        part({"text": "thinking", "thought": True}),
        part({"text": "I "}),
        part({"text": "look."}),
        part(call, finishReason="STOP") | {"usageMetadata": usage},
    )


@pytest.mark.parametrize(
    ("protocol", "stream"),
    [
        (CHAT, chat_stream),
        (RESPONSES, lambda: responses_stream(repeats=True)),
        (RESPONSES, lambda: responses_stream(repeats=False)),
        (GEMINI, gemini_stream),
    ],
)
def test_a_streamed_answer_is_put_together(protocol: Protocol, stream: Callable[[], bytes]) -> None:
    answer = protocol.read_events(read_events(stream()))
    blocks = [block for turn in answer.turns for block in turn.content]
    assert blocks == SAID[1][1]
    assert (answer.id, answer.model, answer.whole) == ("c1", "gpt", True)
    assert answer.used == TokenUse(input_tokens=7, output_tokens=4, cache_read_tokens=2)


@pytest.mark.parametrize(
    ("protocol", "stream"),
    [
        (CHAT, chat_stream),
        (CHAT, lambda: chat_stream().replace(b"null", b'""')),
        (RESPONSES, lambda: responses_stream(repeats=True)),
        (GEMINI, gemini_stream),
    ],
)
def test_a_stream_that_was_cut_off_is_not_whole(protocol: Protocol, stream: Callable[[], bytes]) -> None:
    whole = stream()
    assert not protocol.read_events(read_events(whole[: len(whole) // 2])).whole


def test_pieces_of_a_stream_that_were_never_begun_are_words() -> None:
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello."}}
    answer = MESSAGES.read_events(read_events(events(delta, {"type": "message_stop"})))
    assert [[*turn.content] for turn in answer.turns] == [[{"type": "text", "text": "Hello."}]]


blocks_of_any_form = st.lists(
    st.dictionaries(st.sampled_from(["type", "text", "id"]), json_values, max_size=3), max_size=3
)


@given(st.sampled_from([MESSAGES, RESPONSES, CHAT, GEMINI]), st.sampled_from(["content", "parts"]), blocks_of_any_form)
def test_a_conversation_of_any_form_has_turns_with_ids(protocol: Protocol, member: str, blocks: list[Json]) -> None:
    entries: list[Json] = [{"role": role, "type": "message", member: blocks} for role in ("user", "assistant", "model")]
    turns = protocol.read_request({protocol.history: entries}).turns
    assert all(turn.id for turn in identified(turns))


def test_a_stream_may_contain_separators_of_lines_that_json_leaves_as_they_are() -> None:
    words = "one\u2028two\u2029three\x85four"
    chunk = {"choices": [{"delta": {"content": words}, "finish_reason": "stop"}]}
    body = f"data: {json.dumps(chunk, ensure_ascii=False)}\r\n\r\n".encode()
    [turn] = CHAT.read_events(read_events(body)).turns
    assert turn.content == [{"type": "text", "text": words}]


def test_a_call_without_arguments_has_an_empty_input() -> None:
    begun = {"type": "tool_use", "id": "c", "name": "now", "input": {}}
    events = [
        {"type": "content_block_start", "index": 0, "content_block": begun},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": ""}},
    ]
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
    call = {"id": "c", "type": "function", "function": {"name": "now", "arguments": ""}}
    answers = [
        MESSAGES.read_events(read_events(stream)),
        CHAT.read_answer({"choices": [{"message": {"tool_calls": [call]}}]}),
        RESPONSES.read_answer({"output": [{"type": "function_call", "call_id": "c", "name": "now", "arguments": ""}]}),
    ]
    assert [answer.turns[0].content for answer in answers] == [[begun]] * 3
