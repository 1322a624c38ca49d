"""Cuts a pack for clients that accept a limited number of characters or bytes.

Rows are kept whole or left out: the best rows of the pool, which come first, and the latest rows of the session, with
their tags and dates. The last line of the pool's part says how many rows are missing.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

FIRST_LINE = "<global_observations>"
"""The first line of every pack."""
_GLOBAL = (FIRST_LINE, "</global_observations>")
_LOCAL = ("<local_observations>", "</local_observations>")
_GROUP, _GROUP_END = "<observation-group ", "</observation-group>"
_ROW, _DATE = "* ", "Date: "
# The line that says how many rows are missing.
_MORE = "({} more rows are not shown; recall_memory finds them.)"

Measure = Callable[[str], int]
"""Returns the size of a text in the unit of the limit: characters or bytes."""


@dataclass(frozen=True, slots=True)
class _Own:
    """One of the session's own rows, with the tag of its group and the date line above it."""

    group: str | None
    run: int
    date: str | None
    row: str


def has_rows(pack: str) -> bool:
    """Return whether a pack contains any row."""
    return any(line.startswith(_ROW) for line in pack.splitlines())


def cut_pack(pack: str, limit: int, measure: Measure = len, intro: str = "") -> str:
    """Return a pack with `intro` as its first line, cut between rows so that `measure` is at most `limit`.

    If both parts do not fit together, each gets half and whatever the other leaves unused. If no row fits, the pack
    has none.
    """
    pool, own = _parts(pack)
    whole = _rendered(pool, own, 0, intro)
    if measure(whole) <= limit:
        return whole
    room = limit - measure(_rendered((), (), len(pool) + len(own), intro))

    def pool_cost(count: int) -> int:
        return measure(_pool_text(pool[:count]))

    def own_cost(count: int) -> int:
        return measure(_own_text(_last(own, count)))

    latest = _most(len(own), own_cost, room - room // 2)
    best = _most(len(pool), pool_cost, room - own_cost(latest))
    # The session gets what the pool's rows leave of their half.
    latest = _most(len(own), own_cost, room - pool_cost(best))
    return _rendered(pool[:best], _last(own, latest), len(pool) - best + len(own) - latest, intro)


def shown_ids(cut: str, memory_ids: Sequence[str]) -> list[str]:
    """Return the ids of the rows in a cut pack; `memory_ids` are those of the whole pack, in its order."""
    pool, own = _parts(cut)
    return [*memory_ids[: len(pool)], *memory_ids[len(memory_ids) - len(own) :]]


def _last(own: Sequence[_Own], count: int) -> Sequence[_Own]:
    return own[len(own) - count :]


def _most(count: int, cost: Callable[[int], int], room: int) -> int:
    """Return the largest number of rows, up to `count`, whose cost is at most `room`; cost must not fall with rows."""
    low, high = 0, count
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if cost(middle) <= room else (low, middle - 1)
    return low


def _parts(pack: str) -> tuple[list[str], list[_Own]]:
    """Return the rows of the pool and the session's own rows."""
    pool: list[str] = []
    own: list[_Own] = []
    group: str | None = None
    date: str | None = None
    run, local = 0, False
    for line in pack.splitlines():
        if line == _LOCAL[0]:
            local = True
        elif line.startswith(_GROUP) or line == _GROUP_END:
            group, run, date = (line if line != _GROUP_END else None), run + 1, None
        elif line.startswith(_DATE):
            date = line
        elif line.startswith(_ROW) and local:
            own.append(_Own(group, run, date, line))
        elif line.startswith(_ROW):
            pool.append(line)
    return pool, own


def _rendered(pool: Iterable[str], own: Sequence[_Own], missing: int, intro: str) -> str:
    more = [_MORE.format(missing)] if missing else []
    return "\n".join(
        [_GLOBAL[0], *filter(None, [intro]), *pool, *more, _GLOBAL[1], _LOCAL[0], *_own_lines(own), _LOCAL[1]]
    )


def _pool_text(pool: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in pool)


def _own_text(own: Sequence[_Own]) -> str:
    return "".join(f"{line}\n" for line in _own_lines(own))


def _own_lines(own: Sequence[_Own]) -> list[str]:
    lines: list[str] = []
    last: _Own | None = None
    for one in own:
        if last is None or one.run != last.run:
            lines += [_GROUP_END] if last and last.group else []
            lines += [one.group] if one.group else []
        if one.date and (last is None or (one.run, one.date) != (last.run, last.date)):
            lines.append(one.date)
        lines.append(one.row)
        last = one
    return [*lines, _GROUP_END] if last and last.group else lines
