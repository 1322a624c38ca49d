"""Batches of texts: each text is in one batch, and no other division is cheaper."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.text.batching import batches, by_size

LENGTHS = st.lists(st.integers(0, 256), max_size=9)


def cost(lengths: list[int], divided: list[list[int]], fixed: int) -> int:
    """Return the cost of batches."""
    return sum(fixed + len(batch) * max(lengths[place] for place in batch) for batch in divided)


def divisions(places: list[int], most: int) -> list[list[list[int]]]:
    """Return every way to divide places into batches, in any order."""
    if not places:
        return [[]]
    first, rest = places[0], places[1:]
    found: list[list[list[int]]] = []
    for divided in divisions(rest, most):
        found.append([[first], *divided])
        found += [
            [*divided[:n], [first, *batch], *divided[n + 1 :]] for n, batch in enumerate(divided) if len(batch) < most
        ]
    return found


@given(lengths=LENGTHS, fixed=st.integers(0, 100), most=st.integers(1, 10))
def test_every_text_is_in_one_batch_and_no_batch_is_too_large(lengths: list[int], fixed: int, most: int) -> None:
    divided = batches(lengths, fixed, most)
    assert sorted(place for batch in divided for place in batch) == list(range(len(lengths)))
    assert all(0 < len(batch) <= most for batch in divided)


@given(lengths=st.lists(st.integers(0, 60), max_size=6), fixed=st.integers(0, 100), most=st.integers(1, 6))
def test_no_other_division_is_cheaper(lengths: list[int], fixed: int, most: int) -> None:
    best = min(cost(lengths, divided, fixed) for divided in divisions(list(range(len(lengths))), most))
    assert cost(lengths, batches(lengths, fixed, most), fixed) == best


def test_texts_of_similar_length_share_a_batch_and_a_long_one_is_alone() -> None:
    assert batches([10, 250, 11, 9, 10], fixed=40, most=64) == [[1], [2, 0, 4, 3]]


SIZED = st.lists(st.tuples(st.integers(), st.integers(0, 20)), max_size=30)


@given(SIZED, st.integers(1, 5), st.integers(0, 40))
def test_batches_by_size_keep_the_order_and_are_as_large_as_their_limits_allow(
    items: list[tuple[int, int]], most: int, most_in_all: int
) -> None:
    found = list(by_size(((item, item[1]) for item in items), most, most_in_all))
    assert [item for batch in found for item in batch] == items
    for batch in found:
        assert len(batch) <= most
        assert sum(size for _, size in batch) <= most_in_all or len(batch) == 1
    for batch, after in pairwise(found):
        assert len(batch) == most or sum(size for _, size in [*batch, after[0]]) > most_in_all
