"""Choosing the rows of a pack: pinned first, then by rank, within budgets that the rendered text really keeps."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from server.core.budgets import budgets
from server.core.ranking import distinct, pack_score
from server.core.records import Group, Memory, Session
from server.core.rendering import PackRows, local_date, open_group, own_line, pool_line
from server.core.tokens import estimate_tokens

# Each section's tags, each line's end, and a group's closing tag.
_SECTION_TOKENS = 24
_LINE_END = 1
# No line costs less: its mark, its date and a word.
_SHORTEST_LINE = 8
_CLOSING_TOKENS = estimate_tokens("</observation-group>") + _LINE_END
_DATE_TOKENS = estimate_tokens("Date: 2026-01-01") + _LINE_END


def ranked(memories: Iterable[Memory]) -> list[Memory]:
    """Return memories in the order of a pack: by score, and by id where scores are equal."""
    return sorted(memories, key=lambda m: (-pack_score(m.kind, m.priority, m.last_used_at), m.id))


def choose(
    pinned: Sequence[Memory],
    candidates: Iterable[Memory],
    own: Sequence[Memory],
    groups: Mapping[str, Group],
    session: Session,
) -> PackRows:
    """Return what a session's pack shows.

    `pinned` (at most half of the global budget) and then `candidates` by rank, within the global budget; `own` (by
    time), within the session's. Rows are shown whole or not at all, and each wording once; a row that does not fit
    makes room for the next.
    """
    share = budgets(session.effective_context)
    offered = (*pinned, *ranked(candidates))
    worded = set(distinct(offered))
    pins = [memory for memory in pinned if memory.id in worded]
    shown = list(_fitting(pins, session, share.global_pack_tokens // 2 - _SECTION_TOKENS))
    spent = _SECTION_TOKENS + sum(_pool_cost(memory, session) for memory in shown)
    others = (memory for memory in offered[len(pinned) :] if memory.id in worded)
    pool = [*shown, *_fitting(others, session, share.global_pack_tokens - spent)]
    worded_own = set(distinct(own))
    offered_own = [memory for memory in own if memory.id in worded_own]
    kept = {memory.id for memory in _fitting_own(offered_own, groups, share.observation_tokens, session.timezone)}
    return PackRows(pool, [memory for memory in own if memory.id in kept], dict(groups), len(pins) - len(shown))


def _pool_cost(memory: Memory, session: Session) -> int:
    return estimate_tokens(pool_line(memory, session)) + _LINE_END


def _fitting(memories: Iterable[Memory], session: Session, budget: int) -> Iterator[Memory]:
    for memory in memories:
        if budget < _SHORTEST_LINE:
            return
        cost = _pool_cost(memory, session)
        if cost <= budget:
            budget -= cost
            yield memory


def _fitting_own(own: Sequence[Memory], groups: Mapping[str, Group], budget: int, timezone: str) -> Iterator[Memory]:
    """Yield the session's best rows; a row also pays for its group's tags and its date where it is the first there.

    Rows of a group that are not neighbours in time are shown under a tag each, so every row that begins a run pays.
    """
    headings: set[tuple[str | None, str]] = set()
    budget -= _SECTION_TOKENS
    runs = _runs(own)
    for memory in ranked(own):
        heading = (runs[memory.id], local_date(memory.said_at, timezone))
        cost = estimate_tokens(own_line(memory, timezone)) + _LINE_END
        if heading not in headings:
            cost += _DATE_TOKENS
            group = groups.get(memory.group_id or "")
            cost += estimate_tokens(open_group(group)) + _LINE_END + _CLOSING_TOKENS if group else 0
        if cost <= budget:
            budget -= cost
            headings.add(heading)
            yield memory


def _runs(own: Sequence[Memory]) -> dict[str, str]:
    """Return, for each row, the id of the first row of its run: neighbours in time that belong to one group."""
    runs: dict[str, str] = {}
    first: Memory | None = None
    for memory in own:
        if first is None or first.group_id != memory.group_id:
            first = memory
        runs[memory.id] = first.id
    return runs
