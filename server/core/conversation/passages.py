"""Cuts a session's messages into passages: verbatim windows that make findable what no fact states."""

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from esker.server.core.conversation.records import StoredMessage
from esker.server.core.conversation.trust import lowest_trust
from esker.server.core.errors import InvalidInput
from esker.server.core.records import Trust
from esker.server.core.text.indexing import indexed_parts, part_values
from esker.server.core.text.terms import says_something
from esker.server.core.text.tokens import estimate_tokens

WINDOW_TOKENS = 160
"""Maximum tokens of a window of several messages: about the input limit of small embedding models."""
MOST_MESSAGES = 6
# Maximum tokens of a last message that is repeated in the next window: a reply needs what it replies to.
_SHORT = WINDOW_TOKENS // 3
# A pause this long ends a window: what follows is usually about something else.
_PAUSE = timedelta(hours=4)


@dataclass(frozen=True, slots=True)
class NewPassage:
    """A window of messages with everything that is computed from it before it is stored.

    `terms` is their number in all parts, and `parts_json` has those of each part: a long message has very many, and a
    document passes from the process that makes it to the database faster than objects do.
    """

    first_seq: int
    last_seq: int
    text: str
    content_hash: bytes
    trust: Trust
    tokens: int
    terms: int
    parts_json: str
    said_from: datetime
    said_to: datetime


def passages_of(messages: Sequence[StoredMessage]) -> list[NewPassage]:
    """Return the windows of consecutive messages, in order.

    A window is full at WINDOW_TOKENS or MOST_MESSAGES, and ends at a pause of hours; a longer message is a window by
    itself. A short last message also begins the next window. When messages are added, cutting again from the first
    message of the last window gives the same windows as cutting the whole session.
    """
    return [_passage(window) for window in _windows([each for each in messages if says_something(each.text)])]


def passage_over(messages: Sequence[StoredMessage]) -> NewPassage | None:
    """Return one window of all messages, whatever its size; None if no message contains a letter or digit."""
    said = [message for message in messages if says_something(message.text)]
    return replace(_passage(said), first_seq=messages[0].seq, last_seq=messages[-1].seq) if said else None


def passages_over(messages: Sequence[StoredMessage], spans: Iterable[tuple[int, int]]) -> list[NewPassage]:
    """Return the windows with these first and last seqs; a span in which no message says anything has none.

    Raises InvalidInput for a window of more messages than a passage has.
    """
    said = [message for message in messages if says_something(message.text)]
    seqs, made = [message.seq for message in said], list[NewPassage]()
    for first_seq, last_seq in spans:
        window = said[bisect_left(seqs, first_seq) : bisect_right(seqs, last_seq)]
        if len(window) > MOST_MESSAGES:
            raise InvalidInput(f"A passage has at most {MOST_MESSAGES} messages with text; {len(window)} were given.")
        if window:
            made.append(replace(_passage(window), first_seq=first_seq, last_seq=last_seq))
    return made


def _windows(messages: Sequence[StoredMessage]) -> Iterator[Sequence[StoredMessage]]:
    costs = [_cost(message) for message in messages]
    start = 0
    while start < len(messages):
        end, spent = start + 1, costs[start]
        while end < len(messages) and _fits(messages, start, end, spent + costs[end]):
            spent += costs[end]
            end += 1
        yield messages[start:end]
        again = end < len(messages) and end - start > 1 and costs[end - 1] <= _SHORT
        start = end - 1 if again and _follows(messages[end - 1], messages[end]) else end


def _cost(message: StoredMessage) -> int:
    return estimate_tokens(_line(message))


def _fits(messages: Sequence[StoredMessage], start: int, end: int, tokens: int) -> bool:
    if tokens > WINDOW_TOKENS or end - start >= MOST_MESSAGES:
        return False
    return _follows(messages[end - 1], messages[end])


def _follows(before: StoredMessage, after: StoredMessage) -> bool:
    return abs(after.sent_at - before.sent_at) < _PAUSE


def _passage(window: Sequence[StoredMessage]) -> NewPassage:
    text = "\n".join(_line(message) for message in window)
    sent = [message.sent_at for message in window]
    parts = indexed_parts("\n".join(message.text for message in window))
    return NewPassage(
        first_seq=window[0].seq,
        last_seq=window[-1].seq,
        text=text,
        content_hash=hashlib.sha256(text.encode()).digest(),
        trust=lowest_trust(message.trust for message in window),
        tokens=max(estimate_tokens(text), 1),
        terms=sum(part.total() for part in parts),
        parts_json=json.dumps(part_values(parts)),
        said_from=min(sent),
        said_to=max(sent),
    )


def _line(message: StoredMessage) -> str:
    return f"{message.role}: {message.text}"
