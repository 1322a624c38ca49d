"""The raw tail of a session: which of its latest messages are sent verbatim."""

from collections.abc import Sequence
from itertools import accumulate

from esker.server.core.context.turns import OPENING, MessagePart
from esker.server.core.conversation.records import StoredMessage
from esker.server.core.text.tokens import estimate_tokens

KEEP_LAST_MESSAGES = 12
"""Number of latest messages that are sent even over budget, unless the caller sets another."""

# How many messages are read before those that must be sent, to find the calls that they answer.
_ANSWER_DISTANCE = 200
_OPENING_TOKENS = estimate_tokens(OPENING)


def first_needed(last_seq: int, observed_seq: int, keep_last: int) -> int:
    """Return the first seq to send, so that all unobserved messages and the last `keep_last` are included."""
    return max(1, min(observed_seq + 1, last_seq - keep_last + 1))


def is_enough(read: Sequence[StoredMessage], needed: int, budget: int) -> bool:
    """Return whether the latest messages read so far (in order) contain every tail that may be chosen."""
    if not read:
        return False
    return read[0].seq == 1 or (read[0].seq <= needed - _ANSWER_DISTANCE and sum(m.tokens for m in read) > budget)


def tail_start(parts: Sequence[MessagePart], needed: int, budget: int) -> int:
    """Return the index of the first part that is sent.

    All parts from index `needed` on are sent, with the calls that they answer, and before them as many as fit into
    `budget` tokens together. A tail never begins between a call and its answer.
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
