"""Whether two rows say the same in other small words, so that an answer need not show both.

Showing one row of two risks less than merging them: both are kept, and the shown one names the other and has its
sources. So this ignores two things about which `same_meaning` is strict: who said it ("the user said that …"), and the
small verb and preposition before a place or a means ("go to", "are done on", "with"). All other words must be the same,
in the same order, and so must numbers, names, negations and wishes.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from esker.server.core.facts.same_fact import Fingerprint, fingerprint, same_meaning, says_the_same
from esker.server.core.records import Memory
from esker.server.core.text.labels import without_label
from esker.server.core.text.terms import terms
from esker.server.core.words.lists import any_of, words

RETOLD = 0.7
"""Minimum cosine for rows to be retold.

Measured with the bundled model: retold rows have 0.76 or more, but so do most near misses; 87 of 92 have 0.7 or more.
So the words decide. One of these near misses passed, by "in" and "on", as in `same_meaning`, and none of the 26,857
pairs of 0.7 or more among 2,500 texts of other people's data.
"""

_SPEAKER = re.compile(
    rf"{any_of(words('facts.users'))} (?:{any_of(words('facts.sayings'))}"
    rf"(?: {any_of(words('facts.listeners'))})?(?: {any_of(words('facts.reports'))})? "
    # "User deploys with …", but not "User settings live in …".
    rf"|(?=[a-z]{{2,20}}s (?:{any_of(words('facts.tied_to'))}\b|[^\W\d_a-z])))"
)
_SMALL_VERBS = frozenset(terms(" ".join(words("facts.small_verbs"))))
_TIES = frozenset(words("facts.ties"))
_FEWEST_TERMS = 2


def retold_print(text: str) -> Fingerprint:
    """Return the fingerprint of a row's text without the small words that may differ."""
    plain = without_label(text)
    speaker = _SPEAKER.match(plain)
    row = fingerprint(plain[speaker.end() :] if speaker else plain)
    gist = tuple(term for term in row.gist if term in row.names or term not in _SMALL_VERBS)
    tied = [mark for mark in row.marks if mark[0] in _TIES]
    # Two prepositions must stay, since swapping them changes the meaning ("access to Redis with a key").
    marks = tuple(mark for mark in row.marks if len(tied) > 1 or mark not in tied)
    return replace(row, gist=gist, marks=marks)


def retells(one: Fingerprint, other: Fingerprint, cosine: float) -> bool:
    """Whether a row need not be shown beside another, by their `retold_print`s and the cosine of their vectors."""
    enough = min(len(one.gist), len(other.gist)) >= _FEWEST_TERMS
    return enough and same_meaning(one, other, cosine, least=RETOLD)


def say_the_same(
    row: Memory,
    first: Memory,
    marks: Mapping[str, Fingerprint],
    retold: Callable[[str], Fingerprint],
    near: Mapping[tuple[str, str], float],
) -> bool:
    """Whether an answer need not show a row beside another.

    `marks` are their fingerprints by id, `retold` is `retold_print`, and `near` are cosines as `Texts` has them.
    """
    cosine = near.get((min(row.id, first.id), max(row.id, first.id)))
    return says_the_same(marks[row.id], marks[first.id], cosine) or _retold(row, first, retold, cosine)


def _retold(row: Memory, first: Memory, of: Callable[[str], Fingerprint], cosine: float | None) -> bool:
    """Whether a row retells another of the same project that is as tentative or as certain."""
    if cosine is None or (row.project, row.tentative) != (first.project, first.tentative):
        return False
    return retells(of(row.content), of(first.content), cosine)
