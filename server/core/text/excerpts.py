"""Chooses the part of a long text that an answer shows."""

from collections.abc import Collection

from esker.server.core.text.languages import ENGLISH, language_of
from esker.server.core.text.terms import terms
from esker.server.core.text.tokens import estimate_tokens, trim_to_tokens


def excerpt(text: str, asked: Collection[str], tokens: int) -> str:
    """Return the consecutive lines of a text, in at most `tokens`, that contain most of the terms `asked`.

    Of equally good ones the earliest; a line that is too long is truncated.
    """
    if estimate_tokens(text) <= tokens:
        return text
    lines = text.splitlines()
    costs = [estimate_tokens(line) + 1 for line in lines]
    # A line is often too short to show its language, and detecting it for each doubled the time.
    language = language_of(text) or ENGLISH
    held = [len(set(terms(line, language)).intersection(asked)) for line in lines]
    best, most, start, spent = (0, 1), -1, 0, 0
    for end, cost in enumerate(costs, start=1):
        spent += cost
        while spent > tokens and start < end - 1:
            spent -= costs[start]
            start += 1
        if sum(held[start:end]) > most:
            best, most = (start, end), sum(held[start:end])
    return trim_to_tokens("\n".join(lines[slice(*best)]), tokens)
