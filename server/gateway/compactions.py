"""Requests with which a client has its conversation summarised: neither the order nor the summary is a turn of it."""

import re
from collections.abc import Sequence
from dataclasses import replace

from esker.server.gateway.records import Turn

# How the orders begin: of Claude Code, behind the last result, and of Codex if its provider does not compact.
_ORDERS = re.compile(
    r"CRITICAL: Respond with TEXT ONLY\.[\s\S]{0,2000}?\bYour task is to create a detailed summary of\b"
    r"|Your task is to create a detailed summary of the (?:conversation so far|RECENT portion)\b"
    r"|You are performing a CONTEXT CHECKPOINT COMPACTION\b"
)


def without_order(turns: Sequence[Turn]) -> list[Turn] | None:
    """Return a request's turns without the order to summarise them; None if there is none at the end."""
    if not turns or turns[-1].role != "user" or not turns[-1].content:
        return None
    *others, last = turns[-1].content
    if last.get("type") != "text" or not _ORDERS.match(str(last.get("text", "")).lstrip()):
        return None
    return [*turns[:-1], replace(turns[-1], content=others)]
