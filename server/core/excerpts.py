"""The part of a long text that an answer shows."""

from collections.abc import Collection

from server.core.terms import index_terms
from server.core.tokens import estimate_tokens, trim_to_tokens


def excerpt(text: str, asked: Collection[str], tokens: int) -> str:
    """Return whole lines of a text, in `tokens` at most, that hold most of the terms `asked`, the earliest of equals.

    A line that is longer is cut.
    """
    if estimate_tokens(text) <= tokens:
        return text
    lines = text.splitlines()
    costs = [estimate_tokens(line) + 1 for line in lines]
    held = [len(set(index_terms(line)).intersection(asked)) for line in lines]
    best, most, start, spent = (0, 1), -1, 0, 0
    for end, cost in enumerate(costs, start=1):
        spent += cost
        while spent > tokens and start < end - 1:
            spent -= costs[start]
            start += 1
        if sum(held[start:end]) > most:
            best, most = (start, end), sum(held[start:end])
    return trim_to_tokens("\n".join(lines[slice(*best)]), tokens)
