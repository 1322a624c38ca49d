"""The part of a long history that the gateway leaves out: calls keep their results, and nothing unobserved goes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.conversation.blocks import result_ids, tool_names
from esker.server.gateway.history import head_length, new_start, starts, tail_tokens
from esker.server.gateway.identity import KnownTurn, identified
from esker.server.gateway.records import Turn

WORDS = "The cart keeps its items in the database, and the price is computed when it is shown. " * 4


def text(words: str) -> dict[str, Any]:
    """Return a text block."""
    return {"type": "text", "text": words}


def conversation(turns: Sequence[Turn]) -> list[KnownTurn]:
    """Return the turns of a conversation in which each is a message."""
    return identified(replace(turn, item=item) for item, turn in enumerate(turns))


@st.composite
def conversations(draw: st.DrawFn) -> list[KnownTurn]:
    """Return a conversation of prompts, answers and calls, also several at once and across messages."""
    turns = [Turn("user", [text("Build the shop.")])]
    waiting: list[str] = []
    for number in range(draw(st.integers(0, 60))):
        kind = draw(st.sampled_from(["prompt", "answer", "calls", "results", "results"]))
        if kind == "results" and waiting:
            answered = waiting[: draw(st.integers(1, len(waiting)))]
            waiting = waiting[len(answered) :]
            turns.append(
                Turn("user", [{"type": "tool_result", "tool_use_id": call, "content": WORDS} for call in answered])
            )
        elif kind == "calls":
            ids = [f"t{number}_{each}" for each in range(draw(st.integers(1, 3)))]
            waiting += ids
            turns.append(
                Turn("assistant", [{"type": "tool_use", "id": call, "name": "Bash", "input": {}} for call in ids])
            )
        else:
            turns.append(Turn("user" if kind == "prompt" else "assistant", [text(f"{number} {WORDS}")]))
    return conversation(turns)


def test_a_result_that_its_client_has_shortened_has_fewer_tokens() -> None:
    def tokens(result: str) -> int:
        call: dict[str, Any] = {"type": "tool_result", "tool_use_id": "toolu_shortened", "content": result}
        return tail_tokens(conversation([Turn("user", [call])]), 0)

    whole = tokens(WORDS)
    assert tokens(WORDS) == whole
    assert tokens("[cleared]") < whole / 10


@given(conversations())
def test_a_tail_has_the_call_of_each_result_in_it(turns: list[KnownTurn]) -> None:
    for start in starts(turns):
        called = {call for turn in turns[start:] for call in tool_names([*turn.content])}
        answered = {call for turn in turns[start:] for call in result_ids([*turn.content])}
        assert answered <= called


@given(conversations(), st.integers(0, 60), st.integers(100, 4_000))
def test_only_observed_turns_between_the_head_and_the_last_twelve_are_left_out(
    turns: list[KnownTurn], observed: int, budget: int
) -> None:
    start = new_start(turns, {turn.id for turn in turns[:observed]}, budget)
    if start is not None:
        assert head_length(turns) < start <= max(observed, head_length(turns))
        assert len(turns) - start >= 12


def test_a_tail_begins_as_early_as_its_share_of_the_budget_allows() -> None:
    turns = conversation(
        [Turn("assistant" if n % 2 else "user", [text(f"{n} {WORDS}")]) for n in range(60)],
    )
    budget = 80 * tail_tokens(turns, 59)
    everything = {turn.id for turn in turns}
    start = new_start(turns, everything, budget)
    assert start is not None
    assert tail_tokens(turns, start) <= 0.2 * budget < tail_tokens(turns, start - 1)
    # A tail never moves back.
    assert new_start(turns, everything, budget, start - 1, is_free=True) == start
    assert new_start(turns, everything, budget // 16, 48, is_free=True) is None
    # With less than twelve turns allowed, twelve stay.
    assert new_start(turns, everything, budget // 16) == 48


def test_a_move_that_would_leave_out_little_waits_unless_it_is_free() -> None:
    turns = conversation([Turn("assistant" if n % 2 else "user", [text(f"{n} {WORDS}")]) for n in range(60)])
    everything, budget = {turn.id for turn in turns}, tail_tokens(turns, 48)
    # Of the last 32 turns, 20 may go; of the last 28, 16, which is less than three fifths.
    assert new_start(turns, everything, budget, 28) == 48
    assert new_start(turns, everything, budget, 32) is None
    assert new_start(turns, everything, budget, 32, is_free=True) == 48


def test_a_call_that_was_interrupted_holds_up_nothing() -> None:
    interrupted = Turn("assistant", [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}])
    after = [Turn("user" if n % 2 else "assistant", [text(f"{n} {WORDS}")]) for n in range(1, 40)]
    turns = conversation([Turn("user", [text("Build the shop.")]), interrupted, *after])
    assert starts(turns)[-1] == len(turns) - 1


def test_a_history_that_no_model_has_seen_stays() -> None:
    turns = conversation([Turn("assistant" if n % 2 else "user", [text(f"{n} {WORDS}")]) for n in range(60)])
    assert new_start(turns, set(), 100) is None
    assert new_start(turns, {turn.id for turn in turns[30:]}, 100) is None


def test_a_message_of_several_turns_is_left_out_as_a_whole_and_counts_once() -> None:
    turns = [Turn("user", [text("Build.")])]
    for number in range(20):
        both = [text(f"Part {number}. {WORDS}"), text(f"Also {number}. {WORDS}")]
        turns += [Turn("assistant", [text(f"Built {number}.")]), Turn("user", both)]
    found = conversation(turns)
    assert all(found[start].item != found[start - 1].item for start in starts(found))
    start = new_start(found, {turn.id for turn in found}, 1)
    assert start is not None
    assert found[start].item == len(turns) - 12
