"""Which part of a long history is left out: observed turns between the first prompt and the raw tail.

The tail begins where no call waits for its result, and stays there from request to request, so that the provider's
cache holds; it moves only when the history behind it has grown over its budget, and a move pays for itself.
"""

from collections.abc import Collection, Iterable, Sequence

from esker.server.agents.content import Block
from esker.server.core.context.tail import KEEP_LAST_MESSAGES
from esker.server.core.conversation.blocks import content_tokens, result_ids, tool_names
from esker.server.core.json_input import Json, as_object, characters
from esker.server.gateway.identity import KnownTurn

_KEPT_SHARE = 0.2
"""The share of the budget that the tail may have where it begins anew; the rest is room to grow."""
_MOST_KNOWN = 50_000
"""The turns whose tokens are remembered, the latest ones of all sessions."""
_known_tokens: dict[tuple[str, int], int] = {}
_LEAST_LEFT_OUT = 0.6
"""The least share of a tail that a move leaves out: the provider writes the rest into its cache again."""


BEFORE_ANSWERS = ("system", "developer", "user", "compaction", "compaction_summary")
"""The senders of what comes before an answer, of which not all is a turn: injected context, unknown forms, and what a
provider has made of an earlier part of the conversation, which has no sender but its type."""


def senders_of(items: Iterable[Json]) -> list[Json]:
    """Return the senders of the items of a history."""
    return [each.get("role") or each.get("type") for each in map(as_object, items)]


def head_length(turns: Sequence[KnownTurn]) -> int:
    """Return how many turns stay at the beginning: all before the first answer, which carry the task and its rules."""
    return next((place for place, turn in enumerate(turns) if turn.role == "assistant"), len(turns))


def starts(turns: Sequence[KnownTurn]) -> list[int]:
    """Return the places at which a tail may begin: behind the head, where no call so far has its result later.

    A call that was interrupted never gets one, and waits for nothing. No tail begins within an answer, whose parts
    are sent together: providers refuse a call without the reasoning before it. Nor does one within a message.
    """
    answered = {call for turn in turns for call in result_ids([*turn.content])}
    waiting: set[str] = set()
    head = head_length(turns)
    found: list[int] = []
    for place, turn in enumerate(turns):
        content: list[Block] = [*turn.content]
        before = turns[place - 1]
        is_within = turn.item == before.item or (turn.role == "assistant" and before.role == "assistant")
        if place > head and not is_within and not waiting and not result_ids(content):
            found.append(place)
        waiting -= result_ids(content)
        waiting |= tool_names(content).keys() & answered
    return found


def tokens_of(turns: Sequence[KnownTurn]) -> list[int]:
    """Return the tokens of each turn.

    They are remembered: each request repeats the history, and its words take longer to count than all the rest.
    """
    return [_tokens(turn) for turn in turns]


def uncounted_characters(turns: Sequence[KnownTurn]) -> int:
    """Return the characters of the turns whose tokens are not remembered."""
    keys = map(_key, turns)
    return sum(key[1] for key in keys if key not in _known_tokens)


def _key(turn: KnownTurn) -> tuple[str, int]:
    # Clients shorten old results, which keep the ids of their calls.
    return turn.id, characters([*turn.content])


def _tokens(turn: KnownTurn) -> int:
    key = _key(turn)
    known = _known_tokens.get(key)
    if known is None:
        known = _known_tokens[key] = content_tokens([*turn.content])
        if len(_known_tokens) > _MOST_KNOWN:
            _known_tokens.pop(next(iter(_known_tokens)), None)
    return known


def _last_messages(turns: Sequence[KnownTurn]) -> int:
    """Return where the last twelve messages begin; the turns of one message have its place in common."""
    items = sorted({turn.item for turn in turns})[-KEEP_LAST_MESSAGES:]
    return next((place for place, turn in enumerate(turns) if turn.item == items[0]), 0)


def tail_tokens(turns: Sequence[KnownTurn], start: int) -> int:
    """Return the tokens of the turns from `start` on."""
    return sum(tokens_of(turns[start:]))


def new_start(
    turns: Sequence[KnownTurn], observed: Collection[str], budget: int, after: int = 0, *, is_free: bool = False
) -> int | None:
    """Return where a tail of at most a share of `budget` tokens begins, or None if there is no place worth a move.

    The tail begins at `after` now, and only moves forward: moved back, it would be written into the cache again.
    `observed` are the ids of turns whose content is in memory; no other turn is left out. The last twelve messages
    always stay. A move `is_free` if the provider has to write the history again anyway.
    """
    head = head_length(turns)
    unobserved = next((at for at, turn in enumerate(turns) if at >= head and turn.id not in observed), len(turns))
    latest = min(unobserved, _last_messages(turns))
    sizes = tokens_of(turns)
    possible = [place for place in starts(turns) if after < place <= latest]
    if not possible:
        return None
    found = next((place for place in possible if sum(sizes[place:]) <= budget * _KEPT_SHARE), possible[-1])
    left_out, tail = sum(sizes[max(after, head) : found]), sum(sizes[max(after, head) :])
    return found if is_free or left_out >= _LEAST_LEFT_OUT * tail else None
