"""The gateway knows the order with which a client has its conversation summarised."""

import pytest

from esker.server.agents.content import Block
from esker.server.gateway.compactions import known_part, without_order, without_summary
from esker.server.gateway.records import Turn

CLAUDE_CODE = (
    "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\n- Do NOT use Read.\n\n"
    "Your task is to create a detailed summary of the conversation so far, paying close attention to the requests."
)
COPILOT = (
    "Please create a detailed summary of the conversation so far. The history is being compacted so moving forward, …"
)
CODEX = "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary for another LLM."
RESULT: Block = {"type": "tool_result", "tool_use_id": "t1", "content": "cart.py"}


def text(words: str) -> Block:
    """Return a text block."""
    return {"type": "text", "text": words}


@pytest.mark.parametrize("order", [CLAUDE_CODE, COPILOT, CODEX])
def test_the_order_at_the_end_is_left_out_and_the_result_before_it_stays(order: str) -> None:
    prompt = Turn("user", [text("Build.")])
    assert without_order([prompt, Turn("user", [RESULT, text(order)])]) == [prompt, Turn("user", [RESULT])]


@pytest.mark.parametrize(
    "turns",
    [
        [],
        [Turn("user", [])],
        [Turn("user", [RESULT])],
        [Turn("user", [text(f"What does this mean? {CODEX}")])],
        [Turn("user", [text(CODEX)]), Turn("assistant", [text("A summary.")])],
    ],
)
def test_a_prompt_that_quotes_an_order_is_none(turns: list[Turn]) -> None:
    assert without_order(turns) is None


def test_what_opencode_writes_into_a_compacted_conversation_is_left_out() -> None:
    goes_on = "Continue if you have next steps, or stop and ask for clarification if you are unsure how to proceed."
    asks, summary = Turn("user", [text("What did we do so far?")]), Turn("assistant", [text("We built the shop.")])
    prompt = Turn("user", [text("What did we do so far?")], 3)
    assert without_summary([asks, summary, Turn("user", [text(goes_on)]), prompt, summary]) == [prompt, summary]
    assert without_summary([asks]) == [asks]


def test_a_summary_is_known_by_its_longest_line_if_it_is_long_enough() -> None:
    assert (
        known_part([Turn("assistant", [text("# Goals\n  Build the shop with pnpm.\n")])]) == "Build the shop with pnpm."
    )
    assert known_part([Turn("assistant", [text("Build the shop.")])]) is None
    assert known_part([]) is None
