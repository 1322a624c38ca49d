"""Messages sent to the Messages API: valid for any stored messages, and with all unobserved ones."""

import json
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.context.assembly import cut_tail
from esker.server.core.context.tail import first_needed, is_enough
from esker.server.core.context.turns import OPENING
from esker.server.core.conversation.blocks import content_tokens
from esker.server.core.conversation.records import Role, StoredMessage
from esker.server.core.json_input import Json
from esker.server.core.text.tokens import estimate_tokens
from tests.support.messages_api import faults
from tests.support.records import message

Blocks = list[dict[str, Any]]

_IDS = ["a", "b", "c", "call:1"]
_PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


def _block(kind: str, call: str, word: str) -> dict[str, Any]:
    """Return a block of a kind that says a word."""
    blocks: dict[str, dict[str, Any]] = {
        "text": {"type": "text", "text": f"{word} \n", "cache_control": {"type": "ephemeral"}},
        "blank": {"type": "text", "text": " \n"},
        "call": {"type": "tool_use", "id": call, "name": "Read", "input": {"path": word}, "caller": "x"},
        "bad call": {"type": "tool_use", "id": call, "name": "a tool!", "input": word},
        "result": {"type": "tool_result", "tool_use_id": call, "content": word, "duration": 3},
        "result of blocks": {
            "type": "tool_result",
            "tool_use_id": call,
            "content": [{"type": "text", "text": word}, _PICTURE, {"type": "text", "text": ""}, {"type": "chart"}],
            "is_error": True,
        },
        "empty result": {"type": "tool_result", "tool_use_id": call},
        "thought": {"type": "thinking", "thinking": "hm", "signature": "s"},
        "thought of nobody": {"type": "thinking", "thinking": "hm"},
        "hidden thought": {"type": "redacted_thinking", "data": "xyz"},
        "image": _PICTURE,
        "image nowhere": {"type": "image", "source": {"type": "file", "path": "/x"}},
        "document": {"type": "document", "source": {"type": "url", "url": "https://a.example/b.pdf"}, "title": "t"},
        "unknown": {"type": "input_text", "text": word},
        "stranger": {"type": "computer_call", "id": "1"},
    }
    return blocks[kind]


_KINDS = [
    *("text", "text", "call", "call", "result", "result", "result of blocks", "empty result", "blank", "bad call"),
    *("thought", "thought of nobody", "hidden thought", "image", "image nowhere", "document", "unknown", "stranger"),
]
_MESSAGE = st.tuples(
    st.sampled_from(["user", "assistant", "assistant", "tool", "system"]),
    st.lists(st.tuples(st.sampled_from(_KINDS), st.sampled_from(_IDS)), max_size=4),
)


def _stored(drawn: list[tuple[Role, list[tuple[str, str]]]]) -> list[StoredMessage]:
    """Return messages each of whose blocks says a word of its own."""
    numbers = count(1)
    return [
        message(seq, role, [_block(kind, call, f"w{next(numbers)}w") for kind, call in blocks])
        for seq, (role, blocks) in enumerate(drawn, start=1)
    ]


def _words_of(stored: StoredMessage) -> set[str]:
    """Return the words that a stored message says."""
    found = json.dumps(stored.content)
    return {word for word in found.replace('"', " ").replace("\\n", " ").split() if word[0] + word[-1] == "ww"}


@given(
    drawn=st.lists(_MESSAGE, min_size=1, max_size=25),
    observed=st.integers(0, 25),
    keep_last=st.integers(0, 12),
    budget=st.integers(0, 150),
)
def test_any_tail_is_valid_for_the_api_and_contains_all_unobserved_messages(
    drawn: list[tuple[Role, list[tuple[str, str]]]], observed: int, keep_last: int, budget: int
) -> None:
    stored = _stored(drawn)
    observed = min(observed, len(stored))
    needed = first_needed(len(stored), observed, keep_last)
    tail = cut_tail(stored, needed, budget, ())
    assert faults(tail.messages) == []
    sent = json.dumps(tail.messages)
    first = tail.first_seq or len(stored) + 1
    assert first <= needed
    for one in stored[first - 1 :]:
        assert all(word in sent for word in _words_of(one)), one
    assert not any(word in sent for one in stored[: first - 1] for word in _words_of(one))
    assert tail.tokens == sum(content_tokens(one["content"]) for one in tail.messages)  # pyright: ignore[reportArgumentType]
    assert tail.tokens <= budget or first == needed or _answers_before(stored, first, needed)


def _answers_before(stored: list[StoredMessage], first: int, needed: int) -> bool:
    """Whether a tail may begin before the first needed message: a result there belongs to a call before it."""
    results = {
        str(b.get("tool_use_id")) for one in stored[first - 1 :] for b in one.content if b["type"] == "tool_result"
    }
    return any(str(b.get("id")) in results for one in stored[first - 1 : needed - 1] for b in one.content)


def _call(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "Read", "input": {}}


def _result(name: str, content: Json = "done") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": content}


def _sent(*said: tuple[Role, Json], needed: int = 1, budget: int = 0, told: tuple[str, ...] = ()) -> list[Any]:
    stored = [message(seq, role, content) for seq, (role, content) in enumerate(said, start=1)]
    return cut_tail(stored, needed, budget, told).messages


def _kinds(sent: list[Any]) -> list[tuple[str, list[str]]]:
    return [(one["role"], [block["type"] for block in one["content"]]) for one in sent]


def test_valid_messages_are_sent_as_stored() -> None:
    blocks = [{"type": "thinking", "thinking": "", "signature": "s"}, {"type": "text", "text": "I look."}, _call("a")]
    sent = _sent(("user", "Look."), ("assistant", blocks), ("user", [_result("a")]), ("assistant", "There it is."))
    assert sent == [
        {"role": "user", "content": [{"type": "text", "text": "Look."}]},
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": [_result("a")]},
        {"role": "assistant", "content": [{"type": "text", "text": "There it is."}]},
    ]


def test_consecutive_messages_of_one_role_are_merged() -> None:
    sent = _sent(("user", "One."), ("user", "Two."), ("assistant", "Yes."), ("assistant", [_call("a")]))
    assert _kinds(sent) == [("user", ["text", "text"]), ("assistant", ["text", "tool_use"]), ("user", ["tool_result"])]


def test_late_and_separate_results_are_moved_directly_after_their_calls() -> None:
    sent = _sent(
        ("user", "Go."),
        ("assistant", [_call("a"), _call("b")]),
        ("user", "Wait."),
        ("tool", [_result("b")]),
        ("user", [_result("a")]),
    )
    assert _kinds(sent)[2] == ("user", ["tool_result", "tool_result", "text"])
    assert [block.get("tool_use_id") for block in sent[2]["content"]] == ["a", "b", None]


def test_a_call_without_a_result_gets_a_placeholder_result_that_names_it() -> None:
    stored = [message(1, "user", "Go."), message(2, "assistant", [_call("a")])]
    tail = cut_tail(stored, 1, 0, ())
    assert tail.pending == ["a"]
    answer: Any = tail.messages[-1]["content"]
    assert (answer[0]["tool_use_id"], answer[0]["is_error"]) == ("a", True)


def test_a_result_without_a_call_becomes_text_and_keeps_its_images() -> None:
    [said] = _sent(("user", [_result("z", [{"type": "text", "text": "42"}, _PICTURE])]))
    assert said["content"] == [{"type": "text", "text": "[toolResult: 42]"}, _PICTURE]


@pytest.mark.parametrize(
    ("kind", "media", "accepted"),
    [
        ("document", "application/pdf", True),
        ("document", "image/png", False),
        ("image", "image/png", True),
        ("image", "application/pdf", False),
    ],
)
def test_a_document_is_sent_as_pdf_and_an_image_as_a_picture_only(kind: str, media: str, accepted: bool) -> None:
    given: Json = {"type": kind, "source": {"type": "base64", "media_type": media, "data": "aGk="}}
    [sent] = _sent(("user", [given, {"type": "text", "text": "Look."}]))
    assert sent["content"][0] == (given if accepted else {"type": "text", "text": f"[{kind}]"})


def test_a_result_before_its_call_does_not_belong_to_it() -> None:
    sent = _sent(("user", [_result("a", "early")]), ("assistant", [_call("a")]), ("user", [_result("a", "own")]))
    assert sent[0]["content"] == [{"type": "text", "text": "[toolResult: early]"}]
    assert sent[2]["content"] == [_result("a", "own")]


def test_only_one_call_keeps_a_reused_id_and_the_others_become_text() -> None:
    sent = _sent(
        ("user", "Go."),
        ("assistant", [_call("a")]),
        ("user", [_result("a", "first")]),
        ("assistant", [_call("a")]),
        ("user", [_result("a", "second")]),
    )
    assert faults(sent) == []
    assert sent[3]["content"][0]["text"].startswith("[toolCall Read(")
    assert sent[4]["content"] == [{"type": "text", "text": "[toolResult: second]"}]


def test_thinking_is_sent_only_unchanged() -> None:
    masked: Json = {"type": "thinking", "thinking": "the key is [redacted:aws]", "signature": "s"}
    thoughts: list[Json] = [{"type": "thinking", "thinking": "unsigned"}, masked]
    sent = _sent(("user", "Go."), ("assistant", [*thoughts, {"type": "text", "text": "Gone."}]))
    assert _kinds(sent) == [("user", ["text"]), ("assistant", ["text"])]


def test_a_tail_that_begins_with_the_assistant_gets_a_user_message_before_it() -> None:
    sent = _sent(("user", "Hello."), ("assistant", "Hello."), ("user", "More."), needed=2)
    assert sent[0] == {"role": "user", "content": [{"type": "text", "text": OPENING}]}
    assert [one["role"] for one in sent] == ["user", "assistant", "user"]


def test_a_system_message_becomes_text_unless_the_request_already_has_it() -> None:
    said: list[tuple[Role, Json]] = [("system", "Be brief."), ("system", "The branch is now x."), ("user", "Go.")]
    [sent] = _sent(*said, told=("Be brief.",))
    assert [block["text"] for block in sent["content"]] == ["[system: The branch is now x.]", "Go."]


def test_a_blank_system_message_is_not_sent() -> None:
    [sent] = _sent(("system", " \n"), ("user", "Go."))
    assert [block["text"] for block in sent["content"]] == ["Go."]


@pytest.mark.parametrize(("budget", "first"), [(1_000, 1), (24, 4), (23, 5), (0, 5)])
def test_a_tail_takes_as_many_of_the_older_messages_as_fit(budget: int, first: int) -> None:
    stored = [message(seq, "user", "one two three four five six seven eight") for seq in range(1, 7)]
    assert {one.tokens for one in stored} == {8}
    # Room for the opening words is always reserved.
    assert cut_tail(stored, 5, budget + estimate_tokens(OPENING), ()).first_seq == first


def test_a_tail_does_not_begin_between_a_call_and_its_result() -> None:
    stored = [
        message(1, "user", "Go."),
        message(2, "assistant", [_call("a")]),
        message(3, "user", [_result("a")]),
        message(4, "assistant", "Done."),
    ]
    assert cut_tail(stored, 3, 0, ()).first_seq == 2
    assert cut_tail(stored, 4, 0, ()).first_seq == 4
    costs = [content_tokens(one.content) for one in stored]
    room = estimate_tokens(OPENING) + sum(costs[2:])
    assert cut_tail(stored, 4, room, ()).first_seq == 4, "the result alone would fit"
    assert cut_tail(stored, 4, room + costs[1], ()).first_seq == 2


def test_only_as_much_is_read_as_fits_a_tail() -> None:
    stored = [message(seq, "user", "word") for seq in range(1, 1_001)]
    assert is_enough(stored, 900, 10**9), "there is no more"
    assert not is_enough(stored[700:], 900, 10), "the call of a result may stand before"
    assert is_enough(stored[690:], 900, 10)
    assert not is_enough(stored[690:], 900, 400), "more would fit"
    assert not is_enough([], 1, 0)
