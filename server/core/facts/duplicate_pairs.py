"""Which rows may say the same, without comparing every pair.

Rows that are the same in one of two ways must share something that can be indexed. In nearly the same words
(`same_fact`): of two sets of terms that share at least the share t, one of the rarest |a| - ⌈t·|a|⌉ + 1 terms of each
is shared (prefix filtering; Chaudhuri, Ganti and Kaushik, 2006). Retold (`same_meaning`, `retells`): the same gist, in
some order.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

from esker.server.core.facts.retelling import retold_print, say_the_same
from esker.server.core.facts.same_fact import SAME_WORDS, Fingerprint, fingerprint
from esker.server.core.records import Memory
from esker.server.core.text.folding import same_words_key

# Maximum rows of a group in which every pair is compared; thousands would take minutes.
_MOST_ALIKE = 500


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows ready to be compared, by id: one for each wording and project; `worded` are all rows that share it.

    Only rows of one group are compared; those grouped `by_gist` also by the cosine of their vectors. `crowded` are the
    rows that were left out of a group because it was full.
    """

    by_id: Mapping[str, Memory]
    marks: Mapping[str, Fingerprint]
    worded: Mapping[str, Sequence[str]]
    by_gist: Sequence[Sequence[str]]
    by_words: Sequence[Sequence[str]]
    crowded: Collection[str]


def compared(rows: Iterable[Memory]) -> Rows:
    """Return rows ready to be compared; of a group that would be too large, the first ones."""
    worded: dict[tuple[str, str | None], list[Memory]] = defaultdict(list)
    for row in rows:
        worded[same_words_key(row.content), row.project].append(row)
    firsts = {same[0].id: same[0] for same in worded.values()}
    marks = {row_id: fingerprint(row.content) for row_id, row in firsts.items()}
    by_gist, by_words = _by_gist(firsts, marks), _by_words(marks)
    return Rows(
        firsts,
        marks,
        {same[0].id: [row.id for row in same] for same in worded.values()},
        [group[:_MOST_ALIKE] for group in by_gist],
        [group[:_MOST_ALIKE] for group in by_words],
        {row_id for group in (*by_gist, *by_words) for row_id in group[_MOST_ALIKE:]},
    )


def _by_gist(rows: Mapping[str, Memory], marks: Mapping[str, Fingerprint]) -> list[list[str]]:
    groups: dict[Hashable, dict[str, None]] = defaultdict(dict)
    for prints in (marks, {row_id: retold_print(row.content) for row_id, row in rows.items()}):
        for row_id, one in prints.items():
            groups[tuple(sorted(one.gist))][row_id] = None
    return _of_several(groups)


def _by_words(marks: Mapping[str, Fingerprint]) -> list[list[str]]:
    groups: dict[Hashable, dict[str, None]] = defaultdict(dict)
    held = Counter(term for one in marks.values() for term in one.terms)
    for row_id, one in marks.items():
        for key in _prefix(one, held):
            groups[key][row_id] = None
    return _of_several(groups)


def _of_several(groups: Mapping[Hashable, Mapping[str, None]]) -> list[list[str]]:
    return [list(group) for group in groups.values() if len(group) > 1]


def repeats(rows: Rows, near: Mapping[tuple[str, str], float]) -> dict[str, set[str]]:
    """Return, for each row that others repeat, those others; `near` are cosines by pair of ids.

    Rows of two projects do not count, since they are never shown together, nor do the sources of a reflection.
    """
    found: dict[str, set[str]] = defaultdict(set)
    retold = cache(retold_print)
    for one, other in sorted(_pairs(rows)):
        first, second = rows.by_id[one], rows.by_id[other]
        if _meet(first, second) and say_the_same(first, second, rows.marks, retold, near):
            for each in rows.worded[one]:
                found[each].update(rows.worded[other])
            for each in rows.worded[other]:
                found[each].update(rows.worded[one])
    for same in rows.worded.values():
        for each in same if len(same) > 1 else ():
            found[each].update(same)
    return {row_id: others - {row_id} for row_id, others in found.items()}


def repeated(said_by: Mapping[str, set[str]]) -> list[str]:
    """Return the ids of the rows that repeat one before them: they could be deleted and nothing would be lost."""
    kept: set[str] = set()
    for row_id in sorted(said_by):
        if said_by[row_id].isdisjoint(kept):
            kept.add(row_id)
    return sorted(said_by.keys() - kept)


def _meet(one: Memory, other: Memory) -> bool:
    drawn = one.id in other.source_ids or other.id in one.source_ids
    return not drawn and (one.project is None or other.project is None or one.project == other.project)


def _pairs(rows: Rows) -> set[tuple[str, str]]:
    """Return the pairs of ids, each sorted, that are worth comparing."""
    groups = (*rows.by_words, *rows.by_gist)
    return {(min(pair), max(pair)) for group in groups for pair in combinations(group, 2)}


def _prefix(one: Fingerprint, held: Mapping[str, int]) -> Iterator[Hashable]:
    if not one.terms:
        yield one.words
        return
    rarest = sorted(one.terms, key=lambda term: (held[term], term))
    yield from rarest[: len(rarest) - math.ceil(SAME_WORDS * len(rarest)) + 1]
