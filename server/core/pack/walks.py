"""Finds the best rows of a pool of any size: a merge of one index walk per class of rows, read page by page."""

import heapq
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice, product

from esker.server.core.clock import EARLIEST
from esker.server.core.pack.records import PackRow
from esker.server.core.ranking import KIND_BIAS, last_use, pack_score
from esker.server.core.records import PRIORITIES, Kind, Priority

# Fewest tokens of a line beside its content: its mark, its date and its end.
_LINE_TOKENS = 12
# Rows read beyond a budget, as replacements for rows that do not fit.
_SPARE = 32
_FIRST_PAGE = 16
_LARGEST_PAGE = 10_000
# A second page aims at this many times the rows needed: a third page costs more than a few unneeded rows.
_MARGIN = 1.4
# Pages that may be limited by a guessed score; later pages are read without a guess.
_GUESSED_PAGES = 2
# Scores are rounded, so a floor is lowered by this much.
_ROUNDING = timedelta(seconds=1)
# Smallest distance in score (some 10 s of last use) that rows used at the same moment are taken to have.
_CLOSEST = 1e-5
_HALVINGS = 24


SortKey = tuple[float, str]
"""The sort key of a row in a pack: the negative score, then the id."""

_BEGINNING: SortKey = (-math.inf, "")
_END: SortKey = (math.inf, "")


@dataclass(frozen=True, slots=True)
class Walk:
    """The rows of one class in order, as far as they were read: all rows up to and including the key `frontier`.

    A class is a kind, a priority and, for a session with a project, that `project` or (None) rows without a project.
    `pages` counts how often it was read.
    """

    kind: Kind
    priority: Priority
    project: str | None
    rows: tuple[tuple[SortKey, PackRow], ...] = ()
    frontier: SortKey = _BEGINNING
    pages: int = 0

    @property
    def bound(self) -> float:
        """Return an upper bound for the scores of unread rows."""
        return -self.frontier[0]

    @property
    def ended(self) -> bool:
        """Return whether all rows were read."""
        return self.frontier == _END


@dataclass(frozen=True, slots=True)
class WalkPage:
    """The next page of a walk (by its number): at most `limit` rows, none last used before `floor`."""

    number: int
    floor: datetime
    limit: int


def walks_for(project: str | None) -> list[Walk]:
    """Return the walks for a session of a project, or of none, before their first step."""
    places = (project, None) if project else (None,)
    return [Walk(kind, priority, place) for kind, priority, place in product(KIND_BIAS, PRIORITIES, places)]


def sort_key(row: PackRow) -> SortKey:
    """Return the sort key of a row in a pack."""
    return -pack_score(row.kind, row.priority, row.last_used_at), row.id


def extended(walk: Walk, page: WalkPage, rows: Sequence[PackRow]) -> Walk:
    """Return a walk with the rows of its next page."""
    further = (*walk.rows, *((sort_key(row), row) for row in rows))
    if len(rows) == page.limit:
        frontier = further[-1][0]
    elif page.floor <= EARLIEST:
        frontier = _END
    else:
        frontier = (-pack_score(walk.kind, walk.priority, page.floor), "")
    return replace(walk, rows=further, frontier=frontier, pages=walk.pages + 1)


def best(walks: Sequence[Walk], tokens: int) -> list[PackRow]:
    """Return the best rows that were read: as many as fill `tokens`, and a few spare ones."""
    return [row for _, row in _first(walks, tokens)[0]]


def _first(walks: Sequence[Walk], tokens: int) -> tuple[list[tuple[SortKey, PackRow]], bool]:
    """Return the best rows with their sort keys, and whether they fill `tokens` with all spare rows."""
    merging = heapq.merge(*(walk.rows for walk in walks))
    first = list[tuple[SortKey, PackRow]]()
    for placed in merging:
        first.append(placed)
        tokens -= placed[1].tokens + _LINE_TOKENS
        if tokens <= 0:
            spare = list(islice(merging, _SPARE))
            return [*first, *spare], len(spare) == _SPARE
    return first, False


def next_pages(walks: Sequence[Walk], tokens: int) -> list[WalkPage]:
    """Return the pages to read before `best` returns the same rows as if all walks had been read to their ends.

    Once there are enough rows, nothing that ranks below the last of them matters. The lowest score of the best rows
    is guessed from the density of the rows read so far, so that few rows are read in vain. If a guess was too high,
    the next page is read without one: rows that were written together show no density.
    """
    first, enough = _first(walks, tokens)
    if not first:
        return [WalkPage(number, EARLIEST, _FIRST_PAGE) for number, walk in enumerate(walks) if not walk.ended]
    last = first[-1][0] if enough else _END
    unread = [(number, walk) for number, walk in enumerate(walks) if walk.frontier < last]
    if not unread:
        return []
    cost = sum(row.tokens + _LINE_TOKENS for _, row in first)
    limit = min(_LARGEST_PAGE, tokens * len(first) // cost + 2 * _SPARE)
    down_to = -last[0]
    misled = any(walk.pages >= _GUESSED_PAGES for _, walk in unread)
    # The limit alone keeps a single walk from reading much in vain.
    if enough or not (misled or len(unread) == 1):
        down_to = max(down_to, _guess(walks, [walk for _, walk in unread], int(_MARGIN * limit)))
    return [WalkPage(number, _floor(walk, down_to), limit) for number, walk in unread if walk.bound >= down_to]


def _floor(walk: Walk, down_to: float) -> datetime:
    """Return a time: rows of a walk that were last used before it have a score below `down_to`."""
    return EARLIEST if down_to == -math.inf else last_use(walk.kind, walk.priority, down_to) - _ROUNDING


def _guess(walks: Sequence[Walk], unread: Sequence[Walk], wanted: int) -> float:
    """Return the score above which there are about `wanted` rows, if unread rows are as dense as read ones."""
    read = sorted(-placed[0][0] for walk in walks for placed in walk.rows)
    rates = [(walk.bound, len(walk.rows) / (_CLOSEST - walk.rows[0][0][0] - walk.bound)) for walk in unread]
    high, low = max(bound for bound, _ in rates), min(bound for bound, _ in rates)
    low -= wanted / sum(rate for _, rate in rates)
    for _ in range(_HALVINGS):
        middle = (high + low) / 2
        above = len(read) - bisect_left(read, middle) + sum(rate * max(0.0, bound - middle) for bound, rate in rates)
        high, low = (middle, low) if above < wanted else (high, middle)
    return low
