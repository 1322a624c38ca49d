"""Fits an expansion into a token budget: the memory, its sources, the cited messages, their neighbours.

Texts that do not fit are cut or left out, and counted. The costs are those of the rendered lines, so that the whole
text is inside its budget.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from esker.server.core.recall.expansion import (
    Excerpt,
    ExpandedMemory,
    ExpandedPassage,
    Expansion,
    HeardMessage,
    OmittedCounts,
)
from esker.server.core.recall.expansion_text import (
    CLOSE,
    DRAWN_FROM,
    NO_MESSAGES,
    OPEN,
    head_line,
    left_out_line,
    memory_line,
    message_line,
    session_line,
)
from esker.server.core.text.tokens import estimate_tokens, trim_to_tokens

_LINE_END = 1
# The enclosing element, a heading, and the line about omissions.
_FRAME_TOKENS = sum(
    estimate_tokens(line) + _LINE_END
    for line in (OPEN, CLOSE, DRAWN_FROM, NO_MESSAGES, left_out_line(OmittedCounts(999_999, 999_999, 999_999)))
)
# Minimum tokens to which a text is cut: a few whole sentences say more than the beginnings of many.
_LEAST_TEXT = 60
MIN_TOKENS = 500
"""The smallest budget with room for the frame, the memory and a message."""

_SeqKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _LineCost:
    """The tokens of a line, and the fewest tokens to which it is cut."""

    cost: int
    least: int


def _line(whole: str, bare: str) -> _LineCost:
    """Return the cost of a line; `bare` is the same line without its text."""
    cost = _cost(whole)
    return _LineCost(cost, min(cost, _cost(bare) + _LEAST_TEXT))


def fitted(whole: Expansion, max_tokens: int) -> Expansion:
    """Return as much of an expansion as fits into `max_tokens` (at least MIN_TOKENS) tokens.

    The memory gets at most half of them if it has evidence, the rows that it was drawn from half of the rest, and the
    headings of sessions a quarter of the next rest. Cited messages share the remaining tokens, and their neighbours,
    nearest first, get those that are left.
    """
    budget = max_tokens - _FRAME_TOKENS
    has_evidence = whole.drawn_from or whole.excerpts
    expanded = _fit_head(whole.expanded, budget // 2 if has_evidence else budget)
    budget -= _cost(head_line(expanded))
    drawn_from = _fit_rows(whole.drawn_from, budget // 2)
    budget -= sum(_cost(memory_line(row)) for row in drawn_from)
    opened = _fit_sessions(whole.excerpts, budget // 4)
    budget -= sum(_cost(session_line(excerpt)) for excerpt in opened)
    excerpts = _fit_messages(opened, budget)
    return Expansion(expanded, drawn_from, excerpts, _left_out(whole, drawn_from, excerpts))


def _cost(line: str) -> int:
    return estimate_tokens(line) + _LINE_END


def _left_out(whole: Expansion, drawn_from: Sequence[ExpandedMemory], excerpts: Sequence[Excerpt]) -> OmittedCounts:
    total, shown = _count(whole.excerpts), _count(excerpts)
    return OmittedCounts(
        memories=whole.left_out.memories + len(whole.drawn_from) - len(drawn_from),
        cited=whole.left_out.cited + total[True] - shown[True],
        around=whole.left_out.around + total[False] - shown[False],
    )


def _count(excerpts: Iterable[Excerpt]) -> dict[bool, int]:
    cited = [message.cited for excerpt in excerpts for message in excerpt.messages]
    return {True: cited.count(True), False: cited.count(False)}


def allotted(lines: Sequence[_LineCost], budget: int) -> list[int]:
    """Return how many of `budget` tokens each line gets, in order of precedence; 0: it is left out.

    Lines are included while their `least` fits. The rest of the budget is shared so that long texts are cut to the same
    length.
    """
    shown: list[_LineCost] = []
    for line in lines:
        if line.least > budget:
            break
        budget -= line.least
        shown.append(line)
    limit = 0
    extras = sorted(line.cost - line.least for line in shown)
    for index, extra in enumerate(extras):
        growth = min(extra - limit, budget // (len(extras) - index))
        limit += growth
        budget -= growth * (len(extras) - index)
        if limit < extra:
            break
    limits = [line.least + min(line.cost - line.least, limit) for line in shown]
    return limits + [0] * (len(lines) - len(shown))


def _fit_rows(rows: Sequence[ExpandedMemory], budget: int) -> list[ExpandedMemory]:
    limits = allotted([_line(memory_line(row), memory_line(_row_with(row, ""))) for row in rows], budget)
    return [_cut_row(row, limit) for row, limit in zip(rows, limits, strict=True) if limit]


def _fit_head(head: ExpandedMemory | ExpandedPassage, budget: int) -> ExpandedMemory | ExpandedPassage:
    """Return the expanded memory or passage, cut to fit; a passage is short, since its messages have its words."""
    return head if isinstance(head, ExpandedPassage) else _fit_rows([head], budget)[0]


def _row_with(row: ExpandedMemory, text: str) -> ExpandedMemory:
    return replace(row, memory=replace(row.memory, content=text), truncated=True)


def _cut_row(row: ExpandedMemory, limit: int) -> ExpandedMemory:
    if _cost(memory_line(row)) <= limit:
        return row
    return _row_with(row, _cut(row.memory.content, limit, lambda text: memory_line(_row_with(row, text))))


def _cut(text: str, limit: int, line: Callable[[str], str]) -> str:
    """Return the longest beginning of a text whose line costs at most `limit`; it may be empty."""
    room = limit - _cost(line(""))
    while room > 0:
        cut = trim_to_tokens(text, room)
        excess = _cost(line(cut)) - limit
        if excess <= 0:
            return cut
        # Characters that are escaped in the line cost more there than in the text.
        room -= excess
    return ""


def _fit_sessions(excerpts: Sequence[Excerpt], budget: int) -> list[Excerpt]:
    opened: list[Excerpt] = []
    for excerpt in excerpts:
        budget -= _cost(session_line(excerpt))
        if budget < 0 and opened:
            break
        opened.append(excerpt)
    return opened


def _fit_messages(excerpts: Sequence[Excerpt], budget: int) -> list[Excerpt]:
    cited = [(excerpt, message) for excerpt in excerpts for message in excerpt.messages if message.cited]
    shown = _share(cited, budget)
    budget -= sum(_cost(message_line(shown[_seq_key(*one)], one[0])) for one in cited if _seq_key(*one) in shown)
    shown |= _share(_neighbours(excerpts), budget)
    kept = (
        replace(excerpt, messages=[shown[key] for m in excerpt.messages if (key := _seq_key(excerpt, m)) in shown])
        for excerpt in excerpts
    )
    return [excerpt for excerpt in kept if excerpt.messages]


def _seq_key(excerpt: Excerpt, message: HeardMessage) -> _SeqKey:
    return excerpt.session_id, message.seq


def _neighbours(excerpts: Sequence[Excerpt]) -> list[tuple[Excerpt, HeardMessage]]:
    """Return the messages that are not cited, ordered by their distance from a cited one."""
    neighbours: list[tuple[int, Excerpt, HeardMessage]] = []
    for excerpt in excerpts:
        cited = [index for index, message in enumerate(excerpt.messages) if message.cited]
        for index, message in enumerate(excerpt.messages):
            if not message.cited:
                closest = cited[max(0, bisect_left(cited, index) - 1) : bisect_left(cited, index) + 1]
                neighbours.append((min(abs(index - other) for other in closest), excerpt, message))
    return [(excerpt, message) for _, excerpt, message in sorted(neighbours, key=lambda each: each[0])]


def _share(messages: Sequence[tuple[Excerpt, HeardMessage]], budget: int) -> dict[_SeqKey, HeardMessage]:
    lines = [
        _line(message_line(message, excerpt), message_line(_message_with(message, ""), excerpt))
        for excerpt, message in messages
    ]
    return {
        _seq_key(excerpt, message): _cut_message(message, excerpt, limit)
        for (excerpt, message), limit in zip(messages, allotted(lines, budget), strict=True)
        if limit
    }


def _message_with(message: HeardMessage, text: str) -> HeardMessage:
    return replace(message, text=text, truncated=True)


def _cut_message(message: HeardMessage, excerpt: Excerpt, limit: int) -> HeardMessage:
    if _cost(message_line(message, excerpt)) <= limit:
        return message
    return _message_with(
        message, _cut(message.text, limit, lambda text: message_line(_message_with(message, text), excerpt))
    )
