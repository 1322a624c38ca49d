"""Finds the rows that a later row outdates.

A reflector reads in hindsight: it sees every row at once, with vectors. So besides the comparison of single assertions
(`superseding`), it compares whole rows (`outdated`), and looks for what an outdated row leaves behind: rows of lower
trust that repeat the former value, and reports on a suspicion that another cause has settled.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from esker.server.core.arrays import Vector
from esker.server.core.conversation.trust import at_least_as_trusted
from esker.server.core.facts.records import Fact
from esker.server.core.records import Memory
from esker.server.providers.extractive.outdated import (
    SHARED_TERMS,
    called_wrong,
    is_about_the_same,
    outdates,
    refused,
    withdrawn,
)
from esker.server.providers.extractive.row_parts import RowParts
from esker.server.providers.extractive.superseding import with_replaced
from esker.server.providers.extractive.values import rivals

# Maximum rows that a term makes candidates: the latest that contain it. A higher value finds more and takes longer.
_MOST_ROWS = 100
# Maximum earlier rows that a row is compared with: those that share most terms with it.
_MOST_ALIKE = 20
# Maximum rows between what the assistant said and the user's "no" to it.
_REFUSED_WITHIN = 3


class Hindsight:
    """Finds outdated rows. It remembers what it read and compared: a reflector asks again once other rows are gone."""

    def __init__(self, vectors: Mapping[str, Vector]) -> None:
        self._vectors = vectors
        self._read: dict[str, RowParts] = {}
        self._compared: dict[tuple[RowParts, RowParts], bool] = {}
        self._said: Sequence[RowParts] = ()
        self._superseded: dict[str, str] = {}

    def outdated(self, rows: Sequence[Memory]) -> dict[str, str]:
        """Return the id of each outdated row, with the id of the row that outdates it. The rows are ordered by time."""
        read = [self._reading(row) for row in rows]
        said = [row for row in read if row.memory.trust == "user"]
        if said != self._said:
            self._said, self._superseded = said, _superseded(said)
        found = dict(self._superseded)
        # A row of a reflection takes nothing back: the reflection dropped the withdrawn ruling already.
        observed = {row.id for row in rows if row.kind == "observation"}
        for place, (newer, earlier) in enumerate(_candidates(read)):
            left = [older for older in earlier if older.memory.id not in found]
            found |= {older.memory.id: newer.memory.id for older in left if self._outdates(newer, older)}
            just_said = read[max(0, place - _REFUSED_WITHIN) : place]
            taken_back = (withdrawn(newer, left), called_wrong(newer, left), refused(newer, just_said))
            if newer.memory.id in observed:
                found |= {gone: newer.memory.id for gone in taken_back if gone and gone not in found}
        found |= _evidence(read, found)
        return found | _echoes(read, found)

    def _reading(self, row: Memory) -> RowParts:
        known = self._read.get(row.id)
        if known is None or known.memory != replace(row, kind=known.memory.kind):
            self._read[row.id] = known = RowParts(row, self._vectors.get(row.id))
        return known

    def _outdates(self, newer: RowParts, older: RowParts) -> bool:
        pair = (newer, older)
        if pair not in self._compared:
            self._compared[pair] = outdates(newer, older)
        return self._compared[pair]


def _superseded(said: Sequence[RowParts]) -> dict[str, str]:
    """Return what the comparison of single assertions finds among the user's rows."""
    facts = [
        Fact(row.content, row.priority, row.category, row.trust, (), row.said_at, tentative=row.tentative)
        for row in (read.memory for read in said)
    ]
    latest: dict[str, RowParts] = {}
    found: dict[str, str] = {}
    for newer, fact in zip(said, with_replaced(facts, ()), strict=True):
        for older in filter(None, map(latest.get, (fact.replaces or "").splitlines())):
            if older.memory.content != newer.memory.content and newer.asserts and not _says_more(older, newer):
                found[older.memory.id] = newer.memory.id
        latest[newer.memory.content] = newer
    return found


def _says_more(older: RowParts, newer: RowParts) -> bool:
    """Whether an older row has values besides the one that a newer row replaces, or names another thing."""
    given_up, given = older.values.texts - newer.values.texts, newer.values.texts - older.values.texts
    return (len(given_up) > 1 or bool(given_up and given)) and not rivals(newer.values, older.values)


def _candidates(rows: Sequence[RowParts]) -> Iterator[tuple[RowParts, list[RowParts]]]:
    """Yield each row with the earlier rows that share enough of its terms.

    One term is enough for a row that names a cause or a source that is not believed, and for an earlier row that leaves
    a choice open.
    """
    by_term: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        subject = row.fingerprint.subject
        shared = Counter(other for term in subject for other in by_term[term][-_MOST_ROWS:])
        alike = sorted(shared, key=lambda other: (-shared[other], -other))[:_MOST_ALIKE]
        is_one_enough = row.finds_cause or row.distrusts
        least = {other: 1 if is_one_enough or rows[other].is_undecided else SHARED_TERMS for other in alike}
        yield row, [rows[other] for other in sorted(alike) if shared[other] >= least[other]]
        for term in subject:
            by_term[term].append(place)


def _settled(found: Mapping[str, str]) -> set[str]:
    """Return the ids of the rows that are outdated or outdate others; of two rows, one at most outdates the other."""
    return {*found, *found.values()}


def _echoes(rows: Sequence[RowParts], found: Mapping[str, str]) -> dict[str, str]:
    """Return the rows of lower trust that repeat a value which was given up, even if they were written later."""
    by_id, settled = {row.memory.id: row for row in rows}, _settled(found)
    given_up = [
        (by_id[new], {then.text for _, then in rivals(by_id[new].values, by_id[old].values)})
        for old, new in found.items()
    ]
    return {
        row.memory.id: newer.memory.id
        for newer, values in given_up
        for row in rows
        if row.memory.id not in settled and values and _is_echo(row, newer, values)
    }


def _evidence(rows: Sequence[RowParts], found: Mapping[str, str]) -> dict[str, str]:
    """Return what tools reported on a suspicion before another cause was found."""
    by_id, settled = {row.memory.id: row for row in rows}, _settled(found)
    dropped = [(by_id[old], by_id[new]) for old, new in found.items() if by_id[new].finds_cause and by_id[old].suspects]
    return {
        row.memory.id: cause.memory.id
        for suspicion, cause in dropped
        for row in rows
        if row.memory.id not in settled and _is_evidence(row, suspicion, cause)
    }


def _is_evidence(row: RowParts, suspicion: RowParts, cause: RowParts) -> bool:
    if (row.memory.trust, row.memory.category) != ("tool", "fact") or row.memory.priority == "high":
        return False
    between = suspicion.memory.said_at <= row.memory.said_at <= cause.memory.said_at
    named = suspicion.values.texts - cause.values.texts
    return between and row.memory.session_id == cause.memory.session_id and bool(named & row.values.texts)


def _is_echo(row: RowParts, newer: RowParts, given_up: set[str]) -> bool:
    if row.memory.priority == "high" or at_least_as_trusted(row.memory.trust, newer.memory.trust):
        return False
    return given_up <= row.values.texts and is_about_the_same(newer, row)
