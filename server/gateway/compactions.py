"""The order with which a client has its conversation summarised for a compaction, and the prompts around the summary.

None of it is a turn of the conversation, which goes on in the same session.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from esker.server.gateway.records import Turn

# How the orders of Claude Code (behind the last result), Copilot CLI and Codex begin.
_ORDERS = re.compile(
    r"CRITICAL: Respond with TEXT ONLY\.[\s\S]{0,2000}?\bYour task is to create a detailed summary of\b"
    r"|Your task is to create a detailed summary of the (?:conversation so far|RECENT portion)\b"
    r"|Please create a detailed summary of the conversation so far\. The history is being compacted\b"
    r"|You are performing a CONTEXT CHECKPOINT COMPACTION\b"
)
# OpenCode begins a compacted conversation with a prompt, whose answer is the summary, and goes on with another.
_ASKS = "What did we do so far?"
_GOES_ON = "Continue if you have next steps, or stop and ask for clarification if you are unsure how to proceed."
# Characters of a summary by which it is known again in a prompt.
_LEAST_KNOWN, _MOST_KNOWN = 20, 400


def without_order(turns: Sequence[Turn]) -> list[Turn] | None:
    """Return a request's turns without the order to summarise them; None if they do not end with such an order."""
    if not turns or turns[-1].role != "user" or not turns[-1].content:
        return None
    *others, last = turns[-1].content
    if last.get("type") != "text" or not _ORDERS.match(str(last.get("text", "")).lstrip()):
        return None
    return [*turns[:-1], replace(turns[-1], content=others)]


def without_summary(turns: Sequence[Turn]) -> list[Turn]:
    """Return turns without the prompts that the client wrote, and without the summary behind the first of them."""
    is_summarised = len(turns) > 1 and words_of(turns[0]) == _ASKS and turns[1].role == "assistant"
    return [turn for turn in turns[2 if is_summarised else 0 :] if turn.role != "user" or words_of(turn) != _GOES_ON]


def known_part(summary: Sequence[Turn]) -> str | None:
    """Return the longest line of a summary, by which it is known again; None if it is too short for that."""
    lines = [line.strip() for turn in summary for line in words_of(turn).splitlines()]
    longest = max(lines, key=len, default="")[:_MOST_KNOWN]
    return longest if len(longest) >= _LEAST_KNOWN else None


def words_of(turn: Turn) -> str:
    """Return the texts of a turn, without outer white space."""
    return "\n".join(str(block.get("text", "")) for block in turn.content if block.get("type") == "text").strip()
