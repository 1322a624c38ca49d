"""Finds rows that say the same as an earlier row.

They say it in nearly the same words, with the same meaning by their vectors, or, if the user says that it is repeated,
in fewer words about the same thing.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from esker.server.core.arrays import Vector
from esker.server.core.facts.contradiction import negates, opposed
from esker.server.core.facts.same_fact import SAME_MEANING, Fingerprint, fingerprint, says_the_same
from esker.server.core.records import Memory
from esker.server.core.text.labels import own_statement
from esker.server.core.words.lists import Cue, words
from esker.server.providers.extractive.row_parts import SPEAKERS
from esker.server.providers.extractive.values import read_values

# Maximum rows that share a term for it to make them candidates; a more frequent term distinguishes nothing.
_MOST_ROWS = 50
# Minimum terms that a restatement shares with the row that it repeats.
_SHARED_TERMS = 2
_RESTATED = Cue(*words("reflector.restated"))


def repeated(rows: Sequence[Memory], vectors: Mapping[str, Vector]) -> list[str | None]:
    """Return for each row the id of the first row of its category that says the same, or None."""
    marks = [fingerprint(row.content) for row in rows]
    near = _near_before(rows, vectors)
    by_term: dict[str, list[int]] = defaultdict(list)
    first: list[int | None] = []
    for place, (row, mark) in enumerate(zip(rows, marks, strict=True)):
        # In a reflection the order of rows can differ from the order in which they were said.
        is_said_again = row.kind == "observation" and bool(_RESTATED.search(row.content))
        found = next(
            (
                other
                for other in _candidates(mark, by_term, near[place])
                if (is_said_again and says_again(row, rows[other]))
                or (rows[other].category == row.category and says_the_same(mark, marks[other], near[place].get(other)))
            ),
            None,
        )
        first.append(None if found is None else _root(first, found))
        for term in mark.terms:
            by_term[term].append(place)
    return [None if place is None else rows[place].id for place in first]


def says_again(row: Memory, earlier: Memory) -> bool:
    """Whether the user says that a row repeats something, and an earlier one has half of its subject and all values."""
    again = _RESTATED.search(row.content) if (row.trust, earlier.trust) == ("user", "user") else None
    if not again:
        return False
    said = own_statement(row.content.replace(again[0], " "))
    now, then = read_values(said), read_values(own_statement(earlier.content))
    words_now, words_then = fingerprint(said), fingerprint(earlier.content)
    if not now.texts <= then.texts or not now.names <= {*then.names, *then.frame}:
        return False
    if negates(words_now) != negates(words_then) or opposed(words_now, words_then):
        return False
    subject = words_now.subject - SPEAKERS
    shared = len(subject & words_then.subject)
    return shared >= _SHARED_TERMS and 2 * shared >= len(subject)


def _root(first: Sequence[int | None], place: int) -> int:
    before = first[place]
    return place if before is None else before


def _candidates(mark: Fingerprint, by_term: Mapping[str, list[int]], near: Mapping[int, float]) -> Iterator[int]:
    """Yield the earlier rows that share a rare term with this one or are near it by vector, oldest first."""
    sharing = {
        place for term in mark.terms if len(by_term.get(term, ())) <= _MOST_ROWS for place in by_term.get(term, ())
    }
    yield from sorted(sharing | near.keys())


def _near_before(rows: Sequence[Memory], vectors: Mapping[str, Vector]) -> list[dict[int, float]]:
    """Return for each row the earlier rows whose vectors are near its own, with the cosines."""
    near = [dict[int, float]() for _ in rows]
    places = [place for place, row in enumerate(rows) if row.id in vectors]
    if len(places) < 2:
        return near
    matrix = np.array([vectors[rows[place].id] for place in places])
    for number, place in enumerate(places):
        cosines = matrix[:number] @ matrix[number]
        for other in np.flatnonzero(cosines >= SAME_MEANING):
            near[place][places[int(other)]] = float(cosines[other])
    return near


def likenesses(groups: Sequence[Sequence[str]], vectors: Mapping[str, Vector]) -> list[float]:
    """Return for each group of ids the highest cosine of its vectors with those of any other group; -1 without any."""
    owners = np.array([place for place, group in enumerate(groups) for i in group if i in vectors])
    nearest = np.full(len(groups), -1.0)
    if len(owners) < 2:
        return nearest.tolist()
    matrix = np.array([vectors[i] for group in groups for i in group if i in vectors])
    for owner, vector in zip(owners, matrix, strict=True):
        cosines = matrix @ vector
        cosines[owners == owner] = -1.0
        nearest[owner] = max(nearest[owner], float(cosines.max()))
    return nearest.tolist()
