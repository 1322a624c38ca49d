"""Batches of texts: the cheapest ones for a model, or in order and up to a size."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

_Item = TypeVar("_Item")


def batches(lengths: Sequence[int], fixed: int, most: int) -> list[list[int]]:
    """Return the indexes of texts in the cheapest batches of at most `most` texts, longest texts first.

    `lengths` and `fixed` are in tokens. A model computes each text of a batch at the length of its longest one, so a
    batch costs `fixed` and that length for each of its texts. A cheapest division exists that keeps the order by
    length, so dynamic programming over the sorted texts finds one.
    """
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    cheapest, begins = [0], [0]  # for the first n texts: their minimum cost, and where their last batch begins
    for end in range(1, len(order) + 1):
        cost, begin = min(
            (cheapest[begin] + fixed + lengths[order[begin]] * (end - begin), begin)
            for begin in range(max(0, end - most), end)
        )
        cheapest.append(cost)
        begins.append(begin)
    divided: list[list[int]] = []
    end = len(order)
    while end:
        divided.append(order[begins[end] : end])
        end = begins[end]
    return divided[::-1]


def by_size(items: Iterable[tuple[_Item, int]], most: int, most_in_all: int) -> Iterator[list[_Item]]:
    """Yield items, which come with their sizes, in order and in batches of at most `most` items.

    The sizes of a batch are at most `most_in_all`, unless it has one item alone.
    """
    batch: list[_Item] = []
    whole = 0
    for item, size in items:
        if batch and (len(batch) == most or whole + size > most_in_all):
            yield batch
            batch, whole = [], 0
        batch.append(item)
        whole += size
    if batch:
        yield batch
