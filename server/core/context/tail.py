"""The raw tail of a session: which of its latest messages are sent word for word."""

from collections.abc import Sequence
from itertools import accumulate

from esker.server.core.context.turns import OPENING, MessagePart
from esker.server.core.conversation.records import Message
from esker.server.core.text.tokens import estimate_tokens

KEEP_LAST_MESSAGES = 12
"""The latest messages that are sent whatever they cost, unless the caller says another number."""

# An answer stands near its call, so messages are read this far back behind those that have to be sent.
_ANSWER_DISTANCE = 200
_OPENING_TOKENS = estimate_tokens(OPENING)


def first_needed(last_seq: int, observed_seq: int, keep_last: int) -> int:
    """Return the seq from which on messages have to be sent: all that no observer has seen, and the last few."""
    return max(1, min(observed_seq + 1, last_seq - keep_last + 1))


def is_enough(read: Sequence[Message], needed: int, budget: int) -> bool:
    """Tell whether the messages that were read, the latest ones in order, hold every tail that may be chosen."""
    if not read:
        return False
    return read[0].seq == 1 or (read[0].seq <= needed - _ANSWER_DISTANCE and sum(m.tokens for m in read) > budget)


def tail_start(parts: Sequence[MessagePart], needed: int, budget: int) -> int:
    """Return the place of the first part that is sent.

    All from the place `needed` on are, with whatever call is answered there, and before them as many as fit into
    `budget` tokens together. Nowhere does a tail begin between a call and its answer.
    """
    reaches = [*accumulate((part.reach for part in reversed(parts)), min, initial=len(parts))][::-1]
    whole = [place for place, reach in enumerate(reaches) if reach >= place]
    start = max(place for place in whole if place <= needed)
    spent = _OPENING_TOKENS + sum(part.tokens for part in parts[start:])
    best = start
    for place in range(start - 1, -1, -1):
        spent += parts[place].tokens
        if spent > budget:
            break
        if reaches[place] >= place:
            best = place
    return best
