"""Content blocks, and how an observer sees them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.conversation.blocks import spoken
from esker.server.core.conversation.injected import strip_injected
from esker.server.core.conversation.observer_text import RESULT_CHARACTERS, TOOL_CHARACTERS, message_text, observer_text
from esker.server.core.conversation.records import Block
from esker.server.core.conversation.trust import lowest_trust, message_trust
from esker.server.core.conversation.valid_blocks import as_blocks
from esker.server.core.errors import InvalidInput
from esker.server.core.json_input import Json
from esker.server.core.text.cutting import cut


def test_a_string_is_one_text_block() -> None:
    assert as_blocks("hello") == [{"type": "text", "text": "hello"}]


def test_a_block_of_an_unknown_type_is_kept_and_named() -> None:
    blocks = as_blocks([{"type": "server_tool_use", "id": "x"}])
    assert blocks == [{"type": "server_tool_use", "id": "x"}]
    assert observer_text("assistant", blocks, {}) == "[server_tool_use]"


@pytest.mark.parametrize(
    "content",
    [
        None,
        5,
        {"type": "text"},
        ["text"],
        [{"text": "no type"}],
        [{"type": 3}],
        [{"type": "text"}],
        [{"type": "text", "text": None}],
        [{"type": "image", "source": "x"}],
        [{"type": "tool_use", "input": {}}],
        [{"type": "thinking", "text": "x"}],
    ],
)
def test_invalid_content_is_refused(content: Json) -> None:
    with pytest.raises(InvalidInput, match="content"):
        as_blocks(content)


def test_the_observer_sees_tools_as_lines_and_no_thinking() -> None:
    blocks = as_blocks(
        [
            {"type": "thinking", "thinking": "hmm"},
            {"type": "text", "text": "Looking."},
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
        ]
    )
    assert observer_text("assistant", blocks, {}) == 'Looking.\n[toolCall Bash({"command": "ls"})]'
    answer = as_blocks([{"type": "tool_result", "tool_use_id": "t1", "content": "boom", "is_error": True}])
    assert observer_text("user", answer, {"t1": "Bash"}) == "[toolResult Bash (error): boom]"


LONG = "word " * 1_000


def result(text: str, **fields: Json) -> list[Block]:
    """Return the result of a tool call."""
    return as_blocks([{"type": "tool_result", "tool_use_id": "t1", "content": text, **fields}])


def test_tool_output_is_cut_at_a_space_and_says_so() -> None:
    for text, most in ((observer_text, RESULT_CHARACTERS), (message_text, TOOL_CHARACTERS)):
        shown = text("user", result(LONG), {})
        assert most / 2 < len(shown) <= most + len("[toolResult: ]")
        assert shown.endswith("more characters]]")
        assert "wor …" not in shown


@pytest.mark.parametrize(
    ("blocks", "tool"),
    [
        (result(LONG, is_error=True), "Bash"),
        (result(f"Traceback (most recent call last)\n{LONG}"), "Bash"),
        (result(f"{LONG}\nProcess exited with Exit code 1"), "shell"),
        *((result(LONG), tool) for tool in ("AskUserQuestion", "request_user_input", "question", "ExitPlanMode")),
    ],
)
def test_an_observer_sees_more_of_failures_and_of_what_a_person_answered(blocks: list[Block], tool: str) -> None:
    assert 1_000 < len(observer_text("user", blocks, {"t1": tool})) <= TOOL_CHARACTERS + 40


def test_an_observer_sees_what_the_agent_says_and_calls_whole() -> None:
    report = "The cause was a stale lock. " * 400
    blocks = as_blocks([{"type": "text", "text": report}, {"type": "tool_use", "id": "t", "name": "W", "input": LONG}])
    spoken, call = observer_text("assistant", blocks, {}).rsplit("\n", 1)
    assert spoken == report.strip()
    assert 1_000 < len(call) <= TOOL_CHARACTERS + 20


# Each is one character to a reader, or one mask, and must not be split.
WHOLE = [
    *("a", "é", "語", "😀", " ", "\n"),
    "e\u0301",  # a letter and its accent
    "o\u0302\u0323\u0301",
    "👩\u200d👩\u200d👧\u200d👦",
    "👍🏽",
    "❤\ufe0f",
    "1\ufe0f\u20e3",  # a keycap
    "🇩🇪",
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",  # the flag of England
    "क्षि",
    "\u1100\u1161\u11a8",  # a Hangul syllable in its parts
    "[redacted:github-token]",
    "[redacted:secret]",
]


@given(st.lists(st.sampled_from(WHOLE), min_size=30, max_size=200), st.integers(min_value=40, max_value=200))
def test_a_cut_splits_no_cluster_or_mask_and_keeps_its_limit(pieces: list[str], limit: int) -> None:
    text = "".join(pieces)
    shown = cut(text, limit)
    if len(text) <= limit:
        assert shown == text
        return
    head, _, note = shown.rpartition(" … [")
    assert len(shown) <= limit
    assert note == f"{len(text) - len(head):,} more characters]"
    assert head in {"".join(pieces[:count]) for count in range(len(pieces) + 1)}


@pytest.mark.parametrize("piece", WHOLE)
def test_a_cut_at_any_position_splits_no_cluster_or_mask(piece: str) -> None:
    for limit in range(40, 40 + 2 * len(piece)):
        head = cut(piece * 200, limit).rpartition(" … [")[0]
        assert head == piece * (len(head) // len(piece))
        assert len(head) > limit - 40 - len(piece)


@given(st.text(), st.integers(min_value=40, max_value=200))
def test_a_cut_is_a_prefix_of_any_text(text: str, limit: int) -> None:
    shown = cut(text, limit)
    assert len(shown) <= limit
    assert shown == text or text.startswith(shown.rpartition(" … [")[0])


def test_a_cut_keeps_as_much_as_it_can() -> None:
    assert len(cut("x" * 5_000, 1_500)) == 1_500
    assert cut("x" * 70 + " " + "y" * 5_000, 150).startswith("x" * 70 + " … [")
    assert len(cut("x" * 20 + " " + "y" * 5_000, 150)) == 150


def test_a_piece_that_cannot_be_cut_is_left_out_whole() -> None:
    assert cut("e" + "\u0301" * 999, 100) == " … [1,000 more characters]"


def test_memory_does_not_feed_on_itself() -> None:
    pack = "<global_observations>\n* 🔴 a fact\n</global_observations>\n<local_observations>\n</local_observations>"
    assert strip_injected(f"Before. {pack} After.") == "Before. \n After."
    assert strip_injected(f"Half a pack: {pack[:40]}") == "Half a pack:"
    recalled = as_blocks([{"type": "tool_result", "tool_use_id": "t", "content": "* 🔴 a fact"}])
    assert "a fact" not in observer_text("user", recalled, {"t": "mcp__esker__recall_memory"})


@pytest.mark.parametrize("tag", ["system-reminder", "command-name", "local-command-stdout", "environment_context"])
def test_an_element_injected_by_a_program_is_left_out(tag: str) -> None:
    assert strip_injected(f"Please <{tag}>do this</{tag}> help") == "Please  help"
    assert strip_injected(f"What does <{tag}> mean?") == f"What does <{tag}> mean?"


def test_stripping_takes_linear_time() -> None:
    for hostile in (
        "<system-reminder>" * 60_000,
        "</system-reminder>" + "<system-reminder>" * 60_000,
        "<system-reminder " * 60_000,
    ):
        strip_injected(hostile)  # the suite's timeout is the limit


def test_images_are_not_part_of_the_spoken_text() -> None:
    blocks = as_blocks([{"type": "text", "text": "Look:"}, {"type": "image", "source": {"type": "url", "url": "u"}}])
    assert spoken(blocks) == "Look:"
    assert observer_text("user", blocks, {}) == "Look:\n[image]"


def test_trust_depends_on_the_speaker() -> None:
    result = as_blocks([{"type": "tool_result", "tool_use_id": "t", "content": "x"}])
    assert message_trust("user", as_blocks("hi"), {}) == "user"
    assert message_trust("assistant", as_blocks("hi"), {}) == "assistant"
    assert message_trust("user", result, {"t": "Bash"}) == "tool"
    assert message_trust("user", result, {"t": "WebFetch"}) == "external"
    assert message_trust("system", as_blocks("hi"), {}) == "external"
    assert lowest_trust(["user", "tool", "assistant"]) == "tool"
