"""The gateway knows the order with which a client has its conversation summarised."""

import pytest

from esker.server.agents.content import Block
from esker.server.gateway.compactions import without_order
from esker.server.gateway.records import Turn

CLAUDE_CODE = (
    "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\n- Do NOT use Read.\n\n"
    "Your task is to create a detailed summary of the conversation so far, paying close attention to the requests."
)
CODEX = "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary for another LLM."
RESULT: Block = {"type": "tool_result", "tool_use_id": "t1", "content": "cart.py"}


def text(words: str) -> Block:
    """Return a text block."""
    return {"type": "text", "text": words}


@pytest.mark.parametrize("order", [CLAUDE_CODE, CODEX])
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
