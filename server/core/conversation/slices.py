"""Cuts unobserved messages into slices that fit into one observer call."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import accumulate

from esker.server.core.conversation.blocks import images, is_spoken
from esker.server.core.conversation.records import StoredMessage
from esker.server.core.text.tokens import IMAGE_TOKENS, estimate_tokens, trim_tail_to_tokens, trim_to_tokens

_GAP = timedelta(minutes=10)
"""Minimum silence that is marked in the text shown to an observer."""


def starts_turn(message: StoredMessage) -> bool:
    """Whether a turn begins here: the user speaks, as opposed to a tool that answers."""
    return message.role == "user" and is_spoken(message.content)


def first_slice(messages: Sequence[StoredMessage], limit: int) -> tuple[StoredMessage, ...]:
    """Return the longest prefix of `messages` (oldest first) that costs an observer at most `limit` tokens.

    It ends at a turn boundary if possible; inside a turn that is too long by itself it does not end between a tool
    call and its result. A single message over the limit is a slice of its own, shown with its head and tail and its
    first images. `messages` must not be empty.
    """
    fitting = _count_fitting(messages, limit)
    if fitting == len(messages):
        return tuple(messages)
    if fitting == 0:
        return (_head_and_tail(messages[0], limit),)
    return tuple(messages[: _boundary(messages, fitting)])


def first_half(messages: Sequence[StoredMessage]) -> tuple[StoredMessage, ...] | None:
    """Return the messages before the turn boundary that is nearest to half of their tokens; None for a single turn."""
    shown = [0, *accumulate(message.shown_tokens for message in messages)]
    boundaries = [count for count in range(1, len(messages)) if starts_turn(messages[count])]
    if not boundaries:
        return None
    return tuple(messages[: min(boundaries, key=lambda count: abs(2 * shown[count] - shown[-1]))])


def _count_fitting(messages: Sequence[StoredMessage], limit: int) -> int:
    used = 0
    for count, message in enumerate(messages):
        used += message.shown_tokens
        if used > limit:
            return count
    return len(messages)


def _boundary(messages: Sequence[StoredMessage], fitting: int) -> int:
    """Return how many of the `fitting` messages to take, so that the next slice starts well."""
    for count in range(fitting, 0, -1):
        if starts_turn(messages[count]):
            return count
    for count in range(fitting, 0, -1):
        if messages[count].role != "tool" and is_spoken(messages[count].content):
            return count
    return fitting


def _head_and_tail(message: StoredMessage, limit: int) -> StoredMessage:
    """Return a message truncated to `limit` tokens: up to half of them for images, the rest for its text."""
    pictures = min(IMAGE_TOKENS * len(images(message.content)), limit // 2)
    room, text = limit - pictures, message.text
    whole = estimate_tokens(text)
    if whole > room:
        mark = f"\n[… the middle of this message is left out; it has {whole:,} tokens …]\n"
        room -= estimate_tokens(mark)
        head = trim_to_tokens(text, room * 2 // 3)
        text = head + mark + trim_tail_to_tokens(text, room - estimate_tokens(head))
    return replace(message, text=text, shown_tokens=estimate_tokens(text) + pictures)


def gap_before(message: StoredMessage, before: StoredMessage | None) -> str:
    """Return the line that marks a silence before a message, or an empty string."""
    gap = message.sent_at - before.sent_at if before else timedelta(0)
    if gap < _GAP:
        return ""
    minutes = int(gap.total_seconds() // 60)
    for unit, length in (("day", 1440), ("hour", 60), ("minute", 1)):
        if minutes >= length:
            count = minutes // length
            return f"[{count:,} {unit}{'s' if count > 1 else ''} later]\n"
    raise AssertionError  # a gap has at least ten minutes
