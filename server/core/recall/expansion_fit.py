"""Fitting an expansion into a number of tokens: the memory, its sources, the messages that are cited, their neighbours.

Whatever does not fit is cut or left out, and counted. Costs are those of the lines that a model reads, so that the text
is really inside its budget.
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
# The element, a heading, and that something is not shown.
_FRAME_TOKENS = sum(
    estimate_tokens(line) + _LINE_END
    for line in (OPEN, CLOSE, DRAWN_FROM, NO_MESSAGES, left_out_line(OmittedCounts(999_999, 999_999, 999_999)))
)
# A text is not cut to less than this: a few whole sentences say more than the beginnings of many.
_LEAST_TEXT = 60
MIN_TOKENS = 500
"""A budget in which there is room for the frame, the memory and a message."""

_SeqKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _LineCost:
    """What a line costs, and the least that it is cut to."""

    cost: int
    least: int


def _line(whole: str, bare: str) -> _LineCost:
    """Return what a line costs and, from the line without its text, the least of it."""
    cost = _cost(whole)
    return _LineCost(cost, min(cost, _cost(bare) + _LEAST_TEXT))


def fitted(whole: Expansion, max_tokens: int) -> Expansion:
    """Return as much of an expansion as a model reads in `max_tokens` (at least MIN_TOKENS) tokens.

    The memory gets at most half of them, if there is anything behind it, the rows that it was drawn from half of what
    is left, and the headings of sessions a quarter of that. Cited messages share the rest, and what they leave is for
    their neighbours, the nearest first.
    """
    budget = max_tokens - _FRAME_TOKENS
    behind = whole.drawn_from or whole.excerpts
    expanded = _fit_head(whole.expanded, budget // 2 if behind else budget)
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
    there, shown = _count(whole.excerpts), _count(excerpts)
    return OmittedCounts(
        memories=whole.left_out.memories + len(whole.drawn_from) - len(drawn_from),
        cited=whole.left_out.cited + there[True] - shown[True],
        around=whole.left_out.around + there[False] - shown[False],
    )


def _count(excerpts: Iterable[Excerpt]) -> dict[bool, int]:
    cited = [message.cited for excerpt in excerpts for message in excerpt.messages]
    return {True: cited.count(True), False: cited.count(False)}


def allotted(lines: Sequence[_LineCost], budget: int) -> list[int]:
    """Return how many of `budget` tokens each line gets, in order of precedence; 0 leaves it out.

    As many are shown as find room for the least of them. What is left is shared so that long texts are cut to one
    length.
    """
    shown: list[_LineCost] = []
    for line in lines:
        if line.least > budget:
            break
        budget -= line.least
        shown.append(line)
    limit = 0
    more = sorted(line.cost - line.least for line in shown)
    for place, wanted in enumerate(more):
        grown = min(wanted - limit, budget // (len(more) - place))
        limit += grown
        budget -= grown * (len(more) - place)
        if limit < wanted:
            break
    limits = [line.least + min(line.cost - line.least, limit) for line in shown]
    return limits + [0] * (len(lines) - len(shown))


def _fit_rows(rows: Sequence[ExpandedMemory], budget: int) -> list[ExpandedMemory]:
    limits = allotted([_line(memory_line(row), memory_line(_row_with(row, ""))) for row in rows], budget)
    return [_cut_row(row, limit) for row, limit in zip(rows, limits, strict=True) if limit]


def _fit_head(head: ExpandedMemory | ExpandedPassage, budget: int) -> ExpandedMemory | ExpandedPassage:
    """Return what was asked for, cut to fit; a passage is short, since its messages have its words."""
    return head if isinstance(head, ExpandedPassage) else _fit_rows([head], budget)[0]


def _row_with(row: ExpandedMemory, text: str) -> ExpandedMemory:
    return replace(row, memory=replace(row.memory, content=text), truncated=True)


def _cut_row(row: ExpandedMemory, limit: int) -> ExpandedMemory:
    if _cost(memory_line(row)) <= limit:
        return row
    return _row_with(row, _cut(row.memory.content, limit, lambda text: memory_line(_row_with(row, text))))


def _cut(text: str, limit: int, line: Callable[[str], str]) -> str:
    """Return the beginning of a text whose line costs at most `limit`, if need be an empty one."""
    room = limit - _cost(line(""))
    while room > 0:
        cut = trim_to_tokens(text, room)
        excess = _cost(line(cut)) - limit
        if excess <= 0:
            return cut
        # What is written otherwise in a line than in the text costs more there.
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
    budget -= sum(_cost(message_line(shown[_place(*one)], one[0])) for one in cited if _place(*one) in shown)
    shown |= _share(_neighbours(excerpts), budget)
    kept = (
        replace(excerpt, messages=[shown[place] for m in excerpt.messages if (place := _place(excerpt, m)) in shown])
        for excerpt in excerpts
    )
    return [excerpt for excerpt in kept if excerpt.messages]


def _place(excerpt: Excerpt, message: HeardMessage) -> _SeqKey:
    return excerpt.session_id, message.seq


def _neighbours(excerpts: Sequence[Excerpt]) -> list[tuple[Excerpt, HeardMessage]]:
    """Return the messages that are not cited, those next to a cited one first."""
    found: list[tuple[int, Excerpt, HeardMessage]] = []
    for excerpt in excerpts:
        cited = [place for place, message in enumerate(excerpt.messages) if message.cited]
        for place, message in enumerate(excerpt.messages):
            if not message.cited:
                near = cited[max(0, bisect_left(cited, place) - 1) : bisect_left(cited, place) + 1]
                found.append((min(abs(place - one) for one in near), excerpt, message))
    return [(excerpt, message) for _, excerpt, message in sorted(found, key=lambda one: one[0])]


def _share(messages: Sequence[tuple[Excerpt, HeardMessage]], budget: int) -> dict[_SeqKey, HeardMessage]:
    lines = [
        _line(message_line(message, excerpt), message_line(_message_with(message, ""), excerpt))
        for excerpt, message in messages
    ]
    return {
        _place(excerpt, message): _cut_message(message, excerpt, limit)
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
