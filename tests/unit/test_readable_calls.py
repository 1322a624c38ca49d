"""Calls of tools as a person reads them in passages and messages."""

import json

import pytest

from esker.server.core.conversation.observer_text import message_text
from esker.server.core.conversation.readable_calls import call_words, readable
from esker.server.core.conversation.records import Block
from esker.server.core.json_input import Json


def text_of(*blocks: Block) -> str:
    """A passage of one message of an agent, as it is stored."""
    return f"assistant: {message_text('assistant', blocks, {})}"


def call(arguments: Json) -> Block:
    """A call of a shell."""
    return {"type": "tool_use", "id": "t1", "name": "Bash", "input": arguments}


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"command": 'echo "é"\n make', "timeout": 5}, 'assistant: [calls Bash (command: echo "é" make; timeout: 5)]'),
        ({"command": ["bash", "-lc"], "a": {"b": [1]}}, 'assistant: [calls Bash (command: bash -lc; a: {"b": [1]})]'),
        ({}, "assistant: [calls Bash]"),
        ("make (all)", "assistant: [calls Bash (make (all))]"),
    ],
)  # fmt: skip
def test_a_call_is_shown_by_its_name_and_arguments(arguments: Json, shown: str) -> None:
    assert readable(text_of(call(arguments))) == shown


def test_a_text_that_only_mentions_a_call_stays() -> None:
    said = 'It wrote [toolCall Bash({"a": 1})] there.'
    assert readable(text_of({"type": "text", "text": said})) == f"assistant: {said}"


def test_a_call_that_was_cut_anywhere_still_shows_the_arguments_that_are_left() -> None:
    whole = text_of(call({"command": 'say "a\\b" \u2028', "list": ["x", {"y": "z"}]}))
    for end in range(whole.index(": ", 30) + 4, len(whole)):
        assert readable(whole[:end]).startswith("assistant: [calls Bash (command: ")
    long = readable(text_of(call({"content": "word " * 2_000, "path": "a.py"})))
    assert long.startswith("assistant: [calls Bash (content: word word")
    assert long.endswith(" …)]")
    assert len(long) < 250


def test_a_long_argument_does_not_hide_the_next_and_is_shown_longer_where_all_counts() -> None:
    text = text_of(call({"content": "word " * 100 + "end", "path": "a.py"}))
    assert readable(text).endswith(" …; path: a.py)]")
    assert "end; path" in readable(text, 1_500)


def test_brackets_without_an_end_are_shown_as_they_are() -> None:
    assert readable("[toolCall Bash(" + "[" * 100_000).startswith("[calls Bash ([[")


def test_a_mask_of_a_secret_is_shown_whole_or_not_at_all() -> None:
    mask = "[redacted:github-token]"
    for before in range(130, 170):
        shown = call_words("Bash", {"command": "x" * before + mask})
        assert "[redacted" not in shown or mask in shown


def test_results_say_which_tool_returned_or_failed() -> None:
    lines = ("[toolResult Bash (error): boom: x]", "[toolResult Read: a]", "[toolResult: x]", "[toolResult (error): y]")
    shown = "[Bash failed: boom: x]\n[Read returned: a]\n[a tool returned: x]\n[a tool failed: y]"
    assert readable("\n".join(lines)) == shown


def test_what_is_stored_keeps_the_arguments_as_json() -> None:
    assert json.dumps({"command": "ls"}) in text_of(call({"command": "ls"}))
