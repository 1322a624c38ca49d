"""Turns of a conversation that its client has compacted are found among those that are stored."""

from typing import Any

from esker.server.gateway.identity import KnownTurn, identified
from esker.server.gateway.records import Turn
from esker.server.gateway.stored_turns import stored_ids
from esker.server.usecases.kept_messages import KeptMessage

CALL = Turn("assistant", [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}])
RESULT = Turn("user", [{"type": "tool_result", "tool_use_id": "t1", "content": "cart.py"}])


def prompt(words: str) -> Turn:
    """Return a prompt."""
    return Turn("user", [{"type": "text", "text": words}])


def answer(words: str) -> Turn:
    """Return an answer."""
    return Turn("assistant", [{"type": "text", "text": words}])


WHOLE = [prompt("Build."), CALL, RESULT, answer("Built."), prompt("Go on."), answer("Done."), prompt("Go on.")]


def kept(turns: list[Turn]) -> list[KeptMessage]:
    """Return the messages of turns."""
    return [
        KeptMessage(turn.id, turn.role, None if "t1" in str(turn.content) else [*turn.content])
        for turn in identified(turns)
    ]


def matched(turns: list[Turn], stored: list[Turn]) -> list[tuple[int, int]]:
    """Return which turns are which of the stored ones under another id, by their places."""
    own, theirs = [turn.id for turn in identified(turns)], [turn.id for turn in identified(stored)]
    found = stored_ids(identified(turns), kept(stored))
    return [(own.index(turn), theirs.index(other)) for turn, other in found.items()]


def test_prompts_without_the_answers_between_them_are_stored_already() -> None:
    stored = [*WHOLE, answer("All of it.")]
    prompts = [prompt("Build."), prompt("Go on."), prompt("Go on."), prompt("Test it."), answer("Tested.")]
    # The first one has nothing before it here and there.
    assert matched(prompts, stored) == [(1, 4), (2, 6)]


def test_an_answer_that_begins_a_compacted_conversation_is_stored_already() -> None:
    assert matched([answer("Done."), prompt("Test it."), answer("Tested.")], WHOLE[:6]) == [(0, 5)]


def test_a_prompt_that_is_said_again_is_new() -> None:
    assert matched([answer("Done."), prompt("Go on."), answer("Done.")], WHOLE[:6]) == [(0, 5)]


def test_the_prompt_of_the_work_in_which_a_conversation_was_compacted_is_stored_already() -> None:
    begun = [answer("A summary."), prompt("Build."), answer("Built.")]
    assert matched(begun, WHOLE[:3]) == [(1, 0)]


def test_turns_with_calls_and_those_with_their_own_ids_are_left_alone() -> None:
    assert matched([*WHOLE, answer("All.")], WHOLE) == []
    turns: list[KnownTurn] = identified(WHOLE)
    assert stored_ids(turns, []) == {}


def test_a_text_of_which_a_secret_was_masked_is_found_again() -> None:
    secret: dict[str, Any] = {"type": "text", "text": "The password is hunter2Xk9!pq"}
    masked = KeptMessage("gw_1", "user", [{"type": "text", "text": "The password is [redacted:secret]"}])
    end = KeptMessage("gw_2", "assistant", [{"type": "text", "text": "Noted."}])
    turns = identified([answer("A summary."), Turn("user", [secret]), prompt("Go on.")])
    assert [*stored_ids(turns, [masked, end]).values()] == ["gw_1"]
