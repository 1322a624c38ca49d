"""Groups texts into the cheapest batches for a model: each text of a batch costs as much as its longest one."""

from collections.abc import Sequence


def batches(lengths: Sequence[int], fixed: int, most: int) -> list[list[int]]:
    """Return the indexes of texts in the cheapest batches of at most `most` texts, longest texts first.

    `lengths` and `fixed` are in tokens: a batch costs `fixed` and, for each of its texts, the length of its longest.
    A cheapest division exists that keeps the order by length, so dynamic programming over the sorted texts finds one.
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
