"""Which texts a model should read together: a batch costs what its longest text costs, once for each of its texts."""

from collections.abc import Sequence


def batches(lengths: Sequence[int], fixed: int, most: int) -> list[list[int]]:
    """Return the places of texts in batches of at most `most` that cost least together, longest texts first.

    `lengths` and `fixed` are in tokens: a batch costs `fixed` and, for each of its texts, the length of its longest.
    Some cheapest division keeps the order by length, so it is found from the front, text by text (dynamic programming).
    """
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    cheapest, begins = [0], [0]  # of the first n texts: their cost, and where their last batch begins
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
