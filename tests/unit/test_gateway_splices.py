"""Splices: a client sees one valid answer, and no call of `recall_memory`, however many answers it is made of."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.gateway.server_sent_events import EventReader
from esker.server.gateway.splices import SPLICES
from esker.server.gateway.splices.splice import Splice
from tests.support.messages_api import faults
from tests.support.model_answers import FORMS, Part, Seen

words = st.text("ab ", min_size=1, max_size=6).filter(str.strip)
said = st.tuples(st.sampled_from(["thought", "text"]), words)
recalls = st.lists(st.tuples(st.just("recall"), words), min_size=1, max_size=2)
calls = st.tuples(st.just("call"), st.sampled_from(["Bash", "Read"]))
asking = st.tuples(st.lists(said, max_size=3), recalls).map(lambda parts: [*parts[0], *parts[1]])
last = st.lists(st.one_of(said, calls, st.tuples(st.just("recall"), words)), min_size=1, max_size=4)


class Chain(NamedTuple):
    """The result of answers: what the client got, the items of later requests, and those that it does not know."""

    sent: bytes
    pieces: list[list[bytes]]
    items: list[Any]
    hidden: list[Any]


def streamed(name: str, answers: Sequence[Sequence[Part]]) -> Chain:
    """Send answers through a splice as streams."""
    splice, sent, items = SPLICES[name](), list[list[bytes]](), list[Any]()
    for number, parts in enumerate(answers, 1):
        reader = EventReader()
        chunks = FORMS[name].stream(parts, number)
        sent.append([piece for chunk in chunks for event in reader.feed(chunk) for piece in splice.take(event)])
        items += answered(splice)
    end = splice.finish()
    return Chain(b"".join([*(piece for each in sent for piece in each), *end]), [*sent, end], items, splice.hidden)


def written(name: str, answers: Sequence[Sequence[Part]]) -> tuple[Seen, list[Any]]:
    """Send answers through a splice as documents."""
    splice, items = SPLICES[name](), list[Any]()
    for number, parts in enumerate(answers, 1):
        splice.take_document(FORMS[name].document(parts, number))
        items += answered(splice)
    return FORMS[name].read_document(splice.document()), items


def answered(splice: Splice) -> list[Any]:
    """Answer the calls of the tool in an answer."""
    found = splice.calls()
    return splice.answer([f"about {call.query}" for call in found]) if found else []


def expected(answers: Sequence[Sequence[Part]]) -> list[Part]:
    """Return what a client gets to see, without thoughts."""
    return [part for parts in answers for part in parts if part[0] in ("text", "call")]


def in_words(parts: Sequence[Part]) -> tuple[str, list[Part]]:
    """Return the text of parts without spaces, and the calls: chat completions have one text."""
    return "".join(each for kind, each in parts if kind == "text").replace(" ", "").replace("\n", ""), [
        part for part in parts if part[0] == "call"
    ]


@pytest.mark.parametrize("name", FORMS)
@given(rounds=st.lists(asking, max_size=3), end=last)
def test_the_client_sees_one_valid_answer_without_the_calls_of_the_tool(
    name: str, rounds: list[list[Part]], end: list[Part]
) -> None:
    has_calls = any(kind == "call" for kind, _ in end)
    if not has_calls:
        # A further call of the tool would be answered by a further request.
        end = [part for part in end if part[0] != "recall"] or [("text", "a")]
    answers = [*rounds, end]
    chain = streamed(name, answers)
    for seen in (FORMS[name].read_stream(chain.sent), written(name, answers)[0]):
        assert in_words(seen.parts) == in_words(expected(answers))
        assert seen.written == 10 * len(answers)
        assert seen.reason in (("tool_use", "tool_calls") if has_calls else ("end_turn", "stop")) + (
            "completed",
            "STOP",
        )
    assert written(name, answers)[1] == chain.items


@pytest.mark.parametrize("name", FORMS)
@given(parts=st.lists(st.one_of(said, calls), min_size=1, max_size=5))
def test_an_answer_without_a_call_of_the_tool_passes_byte_for_byte(name: str, parts: list[Part]) -> None:
    chain = streamed(name, [parts])
    assert chain.sent == b"".join(FORMS[name].stream(parts, 1))
    assert chain.hidden == []


@given(parts=st.lists(st.one_of(said, calls), min_size=1, max_size=5))
def test_chunks_without_an_id_pass_byte_for_byte(parts: list[Part]) -> None:
    splice, reader = SPLICES["chat"](), EventReader()
    chunks = [chunk.replace(b'"id": "chatcmpl-1", ', b"") for chunk in FORMS["chat"].stream(parts, 1)]
    passed = [piece for chunk in chunks for event in reader.feed(chunk) for piece in splice.take(event)]
    assert b"".join([*passed, *splice.finish()]) == b"".join(chunks)


def test_neither_an_empty_reason_nor_words_at_the_end_are_the_end_of_a_chat_stream() -> None:
    splice, reader = SPLICES["chat"](), EventReader()
    whole = b"".join(FORMS["chat"].stream([("text", "ab")], 1)).replace(
        b'"finish_reason": null', b'"finish_reason": ""'
    )
    # The last words come with the reason.
    whole = whole.replace(b'"delta": {}', b'"delta": {"content": "Then comes [DONE]."}')
    *chunks, end = reader.feed(whole)
    passed = [b"".join(splice.take(event)) for event in chunks]
    assert passed[:3] == [event.raw for event in chunks[:3]]
    assert not splice.has_ended()
    splice.take(end)
    assert splice.has_ended()
    assert b"".join([*passed, *splice.finish()]) == whole


@given(rounds=st.lists(asking, min_size=1, max_size=3), end=last)
def test_the_requests_of_a_chain_and_the_next_one_of_the_client_are_valid(
    rounds: list[list[Part]], end: list[Part]
) -> None:
    asked = {"role": "user", "content": [{"type": "text", "text": "And now?"}]}
    assert faults([asked, *streamed("messages", rounds).items]) == []
    assert faults([asked, *streamed("messages", [*rounds, end]).hidden]) == []


@pytest.mark.parametrize("name", FORMS)
def test_text_before_a_call_arrives_as_it_comes(name: str) -> None:
    chain = streamed(name, [[("text", "k"), ("recall", "deploys")], [("text", "z"), ("text", "z")]])
    assert b'"k"' in b"".join(chain.pieces[0])
    assert b'z"' in b"".join(chain.pieces[1])
    assert b"recall_memory" not in chain.sent


def test_thoughts_before_a_call_are_hidden_with_it_and_given_back_with_their_signature() -> None:
    chain = streamed(
        "messages", [[("thought", "hm"), ("recall", "deploys")], [("thought", "so"), ("text", "On Fridays.")]]
    )
    assert FORMS["messages"].read_stream(chain.sent).parts == [("thought", "so"), ("text", "On Fridays.")]
    [call, result] = chain.hidden
    assert call["content"][0] == {"type": "thinking", "thinking": "hm", "signature": "sig1.0"}
    assert call["content"][1]["input"] == {"query": "deploys"}
    assert result["content"][0]["content"] == [{"type": "text", "text": "about deploys"}]
    assert chain.items == chain.hidden


def test_a_call_beside_those_of_the_client_is_hidden_and_comes_before_them_in_its_next_request() -> None:
    chain = streamed("messages", [[("thought", "hm"), ("recall", "deploys"), ("call", "Bash")]])
    seen = FORMS["messages"].read_stream(chain.sent)
    assert (seen.parts, seen.reason) == ([("thought", "hm"), ("call", "Bash")], "tool_use")
    assert [block["type"] for message in chain.hidden for block in message["content"]] == ["tool_use", "tool_result"]


def test_reasoning_that_is_not_encrypted_is_not_sent_back_nor_is_any_id_that_needs_it() -> None:
    splice = SPLICES["responses"]()
    document = FORMS["responses"].document([("thought", "hm"), ("recall", "deploys")], 1)
    del document["output"][0]["encrypted_content"]
    splice.take_document(document)
    [call, result] = answered(splice)
    assert call == {
        "type": "function_call",
        "call_id": "call_1_1",
        "name": "recall_memory",
        "arguments": '{"query": "deploys"}',
    }
    assert result == {"type": "function_call_output", "call_id": "call_1_1", "output": "about deploys"}


@pytest.mark.parametrize("name", FORMS)
def test_half_a_character_that_a_provider_sends_reaches_the_client(name: str) -> None:
    chain = streamed(name, [[("thought", "\ud83d"), ("recall", "deploys")], [("text", "\ude00")]])
    assert FORMS[name].read_stream(chain.sent).parts[-1] == ("text", "\ude00")


@pytest.mark.parametrize("name", FORMS)
def test_an_answer_that_was_cut_off_has_no_calls_that_are_answered(name: str) -> None:
    splice, reader = SPLICES[name](), EventReader()
    for chunk in FORMS[name].stream([("text", "I look."), ("recall", "deploys")], 1)[:-3]:
        for event in reader.feed(chunk):
            splice.take(event)
    assert splice.calls() == []


@pytest.mark.parametrize("name", FORMS)
def test_a_character_that_is_cut_between_two_events_arrives_in_its_halves(name: str) -> None:
    chain = streamed(name, [[("recall", "deploys")], [("text", "\U0001f600")]])
    assert "\U0001f600" in "".join(words for _, words in FORMS[name].read_stream(chain.sent).parts)
    chain = streamed(name, [[("recall", "deploys")], [("text", "a\ud83d")]])
    assert rb"\ud83d" in chain.sent


def test_a_blank_text_before_a_call_is_not_sent_back() -> None:
    asked = {"role": "user", "content": [{"type": "text", "text": "And now?"}]}
    assert faults([asked, *streamed("messages", [[("thought", "hm"), ("text", "\n\n"), ("recall", "a")]]).items]) == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("messages", "max_tokens"),
        ("responses", "incomplete"),
        ("chat", "length"),
        ("chat", None),
        ("gemini", "MAX_TOKENS"),
        ("gemini", None),
    ],
)
def test_a_document_does_not_show_a_call_that_was_cut_off(name: str, reason: str | None) -> None:
    document = FORMS[name].document([("text", "I look."), ("recall", "deploys")], 1)
    for ended in (document, *document.get("choices", ()), *document.get("candidates", ())):
        ended |= {each: reason for each in ("stop_reason", "finish_reason", "finishReason", "status") if each in ended}
    splice = SPLICES[name]()
    splice.take_document(document)
    assert (splice.calls() == [], splice.hides_call()) == (True, True)
    shown = json.dumps(splice.document())
    assert "I look." in shown
    assert "recall_memory" not in shown
