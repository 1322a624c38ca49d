"""The merge of walks: the order of the whole pool for any rows, and few rows read for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.clock import EARLIEST
from esker.server.core.pack.records import PackRow
from esker.server.core.pack.walks import Walk, WalkPage, best, extended, next_pages, sort_key, walks_for
from esker.server.core.ranking import pack_score
from tests.support.records import NOON, pack_row

KINDS = st.sampled_from(["note", "reflection", "observation"])
PRIORITIES = st.sampled_from(["high", "medium", "low"])
# Some rows were used at the same moment, and some long ago.
MINUTES = st.one_of(st.integers(min_value=0, max_value=20), st.integers(min_value=0, max_value=500_000))


@dataclass(slots=True)
class CountingPool:
    """Rows that can be walked as a database walks them; counts the rows read."""

    rows: Sequence[PackRow]
    read: int = 0
    rounds: int = 0

    def walk(self, tokens: int, project: str | None = None) -> list[PackRow]:
        """Return the best rows for a session of a project, or of none."""
        walks = walks_for(project)
        while pages := next_pages(walks, tokens):
            self.rounds += 1
            assert self.rounds < 100, "the walks come to no end"
            for page in pages:
                walks[page.number] = extended(walks[page.number], page, self._page(walks[page.number], page, project))
        return best(walks, tokens)

    def _page(self, walk: Walk, page: WalkPage, project: str | None) -> list[PackRow]:
        last = walk.rows[-1][1] if walk.rows else None
        found = [
            row
            for row in self.rows
            if (row.kind, row.priority) == (walk.kind, walk.priority)
            and (project is None or row.project == walk.project)
            and row.last_used_at >= page.floor
            and (last is None or _order(row) > _order(last))
        ]
        found = sorted(found, key=_order)[: page.limit]
        self.read += len(found)
        return found


def _order(row: PackRow) -> tuple[timedelta, str]:
    return NOON - row.last_used_at, row.id


def pool_of(*classes: tuple[str, str, int, timedelta]) -> list[PackRow]:
    """Return rows for each (kind, priority, count, distance in time)."""
    return [
        pack_row(f"{kind} {priority} {n}", kind=kind, priority=priority, last_used_at=NOON - n * apart)
        for kind, priority, count, apart in classes
        for n in range(count)
    ]


rows = st.builds(
    lambda kind, priority, minutes, tokens, project: pack_row(
        kind=kind, priority=priority, last_used_at=NOON - timedelta(minutes=minutes), tokens=tokens, project=project
    ),
    KINDS,
    PRIORITIES,
    MINUTES,
    st.integers(min_value=1, max_value=200),
    st.sampled_from([None, "p"]),
)


@given(st.lists(rows, max_size=300), st.integers(min_value=1, max_value=20_000), st.sampled_from([None, "p"]))
def test_the_merge_of_walks_is_the_order_of_the_whole_pool(
    everything: list[PackRow], tokens: int, project: str | None
) -> None:
    found = CountingPool(everything).walk(tokens, project)
    assert found == sorted(everything, key=sort_key)[: len(found)]
    assert len(found) == len(everything) or sum(row.tokens for row in found) + 12 * len(found) >= tokens


@given(st.lists(rows, min_size=1, max_size=60), st.integers(min_value=20, max_value=2_000))
def test_walks_continue_where_they_stopped(everything: list[PackRow], tokens: int) -> None:
    assert CountingPool(everything).walk(10**9) == sorted(everything, key=sort_key)
    assert (
        CountingPool(everything).walk(tokens)
        == CountingPool(everything).walk(10**9)[: len(CountingPool(everything).walk(tokens))]
    )


def test_few_rows_are_read_and_not_used() -> None:
    minute = timedelta(minutes=1)
    pools = {
        "one class has it all": pool_of(("note", "low", 20_000, minute)),
        "all classes alike": pool_of(
            *((k, p, 3_000, minute) for k in ("note", "observation") for p in ("high", "low"))
        ),
        "one class is denser": pool_of(("note", "low", 20_000, minute / 60), ("observation", "high", 9_000, minute)),
        "all at one moment": pool_of(("note", "medium", 20_000, timedelta(0))),
    }
    for name, everything in pools.items():
        pool = CountingPool(everything)
        found = pool.walk(15_000)
        assert len(found) > 500, name
        assert pool.read < 2 * len(found), name
        assert pool.rounds <= 5, name


def test_no_walk_reads_a_row_twice_however_many_were_used_at_the_same_moment() -> None:
    everything = pool_of(("note", "medium", 3_000, timedelta(0)))
    pool = CountingPool(everything)
    assert len(pool.walk(10**9)) == pool.read == 3_000


def test_a_walk_knows_its_bound_its_frontier_and_whether_it_has_ended() -> None:
    [walk, *_] = walks_for(None)
    floor: datetime = NOON - timedelta(days=1)
    first = pack_row(priority="high")
    assert extended(walk, WalkPage(0, floor, 3), [first]).bound == pack_score("note", "high", floor)
    assert extended(walk, WalkPage(0, floor, 1), [first]).frontier == sort_key(first)
    assert not extended(walk, WalkPage(0, EARLIEST, 1), [first]).ended
    assert extended(walk, WalkPage(0, EARLIEST, 2), [first]).ended


def test_a_small_pool_is_read_in_three_rounds() -> None:
    minute = timedelta(minutes=1)
    pools = {
        "written together": pool_of(*(("note", p, 40, timedelta(0)) for p in ("high", "medium", "low"))),
        "sparse": pool_of(("note", "medium", 40, minute), ("observation", "medium", 200, minute * 50)),
        "larger than a pack": pool_of(("note", "medium", 300, minute), ("observation", "high", 800, minute * 9)),
    }
    for name, everything in pools.items():
        pool = CountingPool(everything)
        pool.walk(15_000)
        assert pool.rounds <= 3, name


def test_thirty_two_rows_are_returned_beyond_those_that_fill_the_budget() -> None:
    everything = pool_of(("note", "medium", 200, timedelta(minutes=1)))
    budget = sum(row.tokens + 12 for row in everything[:10])
    assert CountingPool(everything).walk(budget) == everything[: 10 + 32]
