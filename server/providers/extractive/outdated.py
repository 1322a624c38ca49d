"""Finds the rows that a later row outdates: an older value of the same thing, a failure that was overcome.

A reflector reads in hindsight: it sees every row at once, with vectors. So besides the comparison of `superseding`, a
row outdates an earlier one if both are about the same thing and differ in one value of one kind: "VLAN 30" and
"VLAN 38", "before_page" and "page_ready". It must have the right to: a ruling is outdated by the user alone, and no
row by one of lower trust. Two rows that also name different things ("staging" and "production" with a value each) are
about different things, and a row that says more than its value stays. In doubt nothing is outdated.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from esker.server.core.conversation.trust import at_least_as_trusted
from esker.server.core.facts.records import Fact
from esker.server.core.facts.same_fact import Fingerprint, fingerprint, same_subject
from esker.server.core.records import Memory
from esker.server.core.text import labels
from esker.server.core.text.labels import own_statement
from esker.server.core.text.languages import ENGLISH, STOP_WORDS, language_of
from esker.server.core.text.terms import terms
from esker.server.core.words.lists import any_of, cue, words
from esker.server.providers.extractive import cues
from esker.server.providers.extractive.assertions import read_assertion
from esker.server.providers.extractive.superseding import with_replaced
from esker.server.providers.extractive.values import Value, Values, name_different_things, read_values, rivals

# Minimum cosine of two rows, or minimum share of the subject, for them to be about the same thing. The lower ones are
# for a row that marks a change.
_NEAR, _NEAR_CHANGE = 0.6, 0.5
_SUBJECT, _SUBJECT_CHANGE = 0.5, 0.4
# Minimum terms that two rows about the same thing share besides their values.
_SHARED_TERMS = 2
# Maximum rows that share a term for it to make them candidates; a more frequent term distinguishes nothing.
_MOST_ROWS = 100
# Maximum earlier rows that a row is compared with: those that share most terms with it.
_MOST_ALIKE = 20
_RULINGS = ("decision", "preference")
_CHANGES = ("decision", "state_change")
_ENDS = ("decision", "state_change", "outcome")

_MARKED = cue(*words("assertions.changes"))
_LIMITED = cue(*words("reflector.limited"))
_SPEAKER = re.compile(any_of(words("reflector.speakers")), re.IGNORECASE)
_SPEAKERS = frozenset(terms(" ".join(words("reflector.speakers"))))
_ASKING = cue(*words("reflector.asking"))
# Maximum characters before the word that tells that a row reports a question.
_ASKING_WITHIN = 40
_WITHDRAWN = cue(*words("reflector.withdrawn"))
_SUSPECTED = cue(*words("reflector.suspected"))
_CAUSE_FOUND = cue(*words("reflector.cause_found"))


@dataclass(frozen=True, eq=False)
class _ReadRow:
    """A row with the parts that are compared."""

    row: Memory
    vector: npt.NDArray[np.float32] | None

    @cached_property
    def text(self) -> str:
        """The row without its label, the purpose of a change, and notes on older rows."""
        return own_statement(self.row.content)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of the text."""
        return fingerprint(self.text)

    @cached_property
    def subject(self) -> frozenset[str]:
        """The terms of what the text is about, without its values."""
        small = STOP_WORDS[language_of(self.text) or ENGLISH]
        return self.fingerprint.subject.difference(
            small, _SPEAKERS, *(terms(value.text) for value in self.values.values)
        )

    @cached_property
    def said(self) -> frozenset[str]:
        """All terms of the text, and words that name no thing."""
        return self.fingerprint.terms | STOP_WORDS[language_of(self.text) or ENGLISH] | _SPEAKERS

    @cached_property
    def values(self) -> Values:
        """The numbers, identifiers and names of the text."""
        return read_values(self.text)

    @cached_property
    def is_limited(self) -> bool:
        """Whether the row holds for one case only."""
        return bool(_LIMITED.search(self.text))

    @cached_property
    def suspects(self) -> bool:
        """Whether the row names a suspected cause."""
        return bool(_SUSPECTED.search(self.text))

    @cached_property
    def finds_cause(self) -> bool:
        """Whether the row names a cause that was found."""
        return bool(_CAUSE_FOUND.search(self.text)) and not self.suspects

    @cached_property
    def asks(self) -> bool:
        """Whether the row is a question, or tells that somebody asked something."""
        said = self.row.content
        reported = _SPEAKER.match(said) and _ASKING.search(said[:_ASKING_WITHIN])
        return said.startswith(labels.ASKED) or cues.asks(said) or bool(reported)

    @cached_property
    def is_firm(self) -> bool:
        """Whether the row is asserted by its speaker, without a condition."""
        return read_assertion(self.row.id, self.row.content).firm

    @cached_property
    def says_change(self) -> bool:
        """Whether the words of the row say that something changed or is corrected."""
        return bool(cues.CORRECTION.search(self.row.content) or _MARKED.search(self.text))

    @property
    def is_marked(self) -> bool:
        """Whether the row says, or the observer found, that something changed."""
        return self.row.category == "state_change" or self.says_change

    @cached_property
    def changes(self) -> bool:
        """Whether the row rules on something, or changes it."""
        return self.row.category in _CHANGES or self.is_marked

    @cached_property
    def asserts(self) -> bool:
        """Whether the row states something, without a reservation."""
        return not self.asks and not self.row.tentative and not cues.TENTATIVE.search(self.row.content)


class Hindsight:
    """Finds outdated rows. It remembers what it read and compared: a reflector asks again once other rows are gone."""

    def __init__(self, vectors: Mapping[str, Sequence[float]]) -> None:
        self._vectors = {name: np.array(vector, dtype=np.float32) for name, vector in vectors.items()}
        self._read: dict[str, _ReadRow] = {}
        self._compared: dict[tuple[_ReadRow, _ReadRow], bool] = {}
        self._said: Sequence[_ReadRow] = ()
        self._superseded: dict[str, str] = {}

    def outdated(self, rows: Sequence[Memory]) -> dict[str, str]:
        """Return the id of each outdated row, with the id of the row that outdates it. The rows are ordered by time."""
        read = [self._reading(row) for row in rows]
        said = [row for row in read if row.row.trust == "user"]
        if said != self._said:
            self._said, self._superseded = said, _superseded(said)
        found = dict(self._superseded)
        # A reflection took back its ruling already; the one before is another.
        observed = {row.id for row in rows if row.kind == "observation"}
        for newer, earlier in _candidates(read):
            left = [older for older in earlier if older.row.id not in found]
            found |= {older.row.id: newer.row.id for older in left if self._outdates(newer, older)}
            if newer.row.id in observed and (withdrawn := _withdrawn(newer, left)) and withdrawn not in found:
                found[withdrawn] = newer.row.id
        return found | _echoes(read, found)

    def _reading(self, row: Memory) -> _ReadRow:
        known = self._read.get(row.id)
        if known is None or known.row != replace(row, kind=known.row.kind):
            self._read[row.id] = known = _ReadRow(row, self._vectors.get(row.id))
        return known

    def _outdates(self, newer: _ReadRow, older: _ReadRow) -> bool:
        pair = (newer, older)
        if pair not in self._compared:
            self._compared[pair] = _outdates(newer, older)
        return self._compared[pair]


def _superseded(said: Sequence[_ReadRow]) -> dict[str, str]:
    """Return what the comparison of single assertions finds among the user's rows."""
    facts = [
        Fact(row.content, row.priority, row.category, row.trust, (), row.said_at, tentative=row.tentative)
        for row in (read.row for read in said)
    ]
    latest: dict[str, _ReadRow] = {}
    found: dict[str, str] = {}
    for newer, fact in zip(said, with_replaced(facts, ()), strict=True):
        older = latest.get(fact.replaces or "")
        if older and older.row.content != newer.row.content and newer.asserts and not _says_more(older, newer):
            found[older.row.id] = newer.row.id
        latest[newer.row.content] = newer
    return found


def _says_more(older: _ReadRow, newer: _ReadRow) -> bool:
    """Whether an older row has values besides the one that a newer row replaces, or names another thing."""
    given_up, given = older.values.texts - newer.values.texts, newer.values.texts - older.values.texts
    return (len(given_up) > 1 or bool(given_up and given)) and not rivals(newer.values, older.values)


def _candidates(rows: Sequence[_ReadRow]) -> Iterator[tuple[_ReadRow, list[_ReadRow]]]:
    """Yield each row with the earlier rows that share enough of its terms, or one if it names a cause."""
    by_term: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        subject = row.fingerprint.subject
        shared = Counter(other for term in subject for other in by_term[term][-_MOST_ROWS:])
        least = 1 if row.finds_cause else _SHARED_TERMS
        alike = sorted(shared, key=lambda other: (-shared[other], -other))[:_MOST_ALIKE]
        yield row, [rows[other] for other in sorted(alike) if shared[other] >= least]
        for term in subject:
            by_term[term].append(place)


def _withdrawn(newer: _ReadRow, earlier: Sequence[_ReadRow]) -> str | None:
    """Return the id of the latest ruling about the same thing, if the user takes one back."""
    if newer.row.trust != "user" or not newer.asserts or not _WITHDRAWN.search(newer.text):
        return None
    rulings = (row for row in reversed(earlier) if row.row.category in _CHANGES and row.row.trust == "user")
    latest = next((row for row in rulings if _share_enough(newer, row)), None)
    return latest.row.id if latest and not name_different_things(newer.values, latest.values) else None


def _share_enough(newer: _ReadRow, older: _ReadRow) -> bool:
    """Whether two rows share enough terms or values to be about one thing."""
    return len(newer.subject & older.subject) + len(newer.values.texts & older.values.texts) >= _SHARED_TERMS


def _outdates(newer: _ReadRow, older: _ReadRow) -> bool:
    if not newer.asserts or not _has_the_right(newer.row, older.row):
        return False
    if older.asks:
        return _answers(newer, older)
    if older.row.category in ("issue", "next_step"):
        return _ends(newer, older)
    return _gives_another_value(newer, older) or _finds_the_cause(newer, older)


def _has_the_right(newer: Memory, older: Memory) -> bool:
    """Whether the speaker of a row may outdate another row; only the user outdates a ruling."""
    if "manual" in (newer.kind, older.kind) or newer.said_at < older.said_at:
        return False
    if older.category in _RULINGS or older.priority == "high":
        return at_least_as_trusted(newer.trust, older.trust)
    return newer.trust in ("user", "assistant") or at_least_as_trusted(newer.trust, older.trust)


def _gives_another_value(newer: _ReadRow, older: _ReadRow) -> bool:
    """Whether a ruling or a change states another value of the same thing, or a measurement is repeated."""
    if newer.is_limited or not (newer.changes or _is_same_measurement(newer, older)):
        return False
    found = rivals(newer.values, older.values)
    if not newer.changes and not all(then.is_number for _, then in found):
        return False  # measurements of two things
    if not found or not newer.is_firm:
        return False
    if _is_of_one_key(found):
        return True
    return not _have_other_subjects(found, newer, older) and _is_about_the_same(newer, older)


def _have_other_subjects(pairs: Sequence[tuple[Value, Value]], newer: _ReadRow, older: _ReadRow) -> bool:
    """Whether the values are of different things: of a narrower one, or each of a thing that the other lacks."""
    heads = {term for now, _ in pairs for term in terms(_MARKED.sub(" ", now.head))}
    former_heads = {term for _, then in pairs for term in terms(then.head)}
    narrower, former = heads - older.said, former_heads - newer.said
    # Pairs of characters do not tell a verb from its subject; so the head must name the former subject.
    marked = newer.says_change or (newer.values.is_cjk and newer.is_marked and bool(heads & former_heads))
    return bool(narrower) and (bool(former) or not marked)


def _is_of_one_key(pairs: Sequence[tuple[Value, Value]]) -> bool:
    """Whether an identifier names what the values are of."""
    return any(now.key and now.key == then.key for now, then in pairs)


def _is_same_measurement(newer: _ReadRow, older: _ReadRow) -> bool:
    """Whether two rows differ in nothing but their values."""
    same = (newer.row.trust, newer.row.category) == (older.row.trust, older.row.category)
    return same and newer.values.frame == older.values.frame


def _is_about_the_same(newer: _ReadRow, older: _ReadRow) -> bool:
    if newer.is_marked:
        return _is_near(newer, older, _SUBJECT_CHANGE, _NEAR_CHANGE)
    return _is_near(newer, older, _SUBJECT, _NEAR)


def _is_near(newer: _ReadRow, older: _ReadRow, subject: float, cosine: float) -> bool:
    """Whether two rows share enough of their subjects, or are near by meaning."""
    if len(newer.subject & older.subject) < _SHARED_TERMS:
        return False
    if _same_subject(newer, older) >= subject:
        return True
    if newer.values.is_cjk or newer.vector is None or older.vector is None:
        return False  # the bundled model knows little Chinese and Japanese
    return float(newer.vector @ older.vector) >= cosine


def _same_subject(newer: _ReadRow, older: _ReadRow) -> float:
    """Return from 0 to 1 how far two rows have one subject, whatever their values; that of the older counts double."""
    shared = len(newer.subject & older.subject)
    return (2 * shared / max(1, len(older.subject)) + shared / max(1, len(newer.subject))) / 3


def _ends(newer: _ReadRow, older: _ReadRow) -> bool:
    """Whether a row tells how a failure was overcome or how an open matter ended; a failure of weight stays."""
    if older.row.priority == "high" or newer.row.category not in _ENDS:
        return False
    if older.row.category == "issue" and newer.row.category != "outcome":
        return False
    given_up = older.values.texts - newer.values.texts
    if given_up and not rivals(newer.values, older.values):
        return False
    shared = {term for term in newer.fingerprint.subject & older.fingerprint.subject if not term.isdecimal()}
    return len(shared) >= _SHARED_TERMS and same_subject(newer.fingerprint, older.fingerprint) >= _SUBJECT


def _answers(newer: _ReadRow, older: _ReadRow) -> bool:
    """Whether a row answers a question of its session: it says something about the same thing later."""
    same_session = newer.row.session_id == older.row.session_id
    return same_session and older.row.priority != "high" and _is_near(newer, older, _SUBJECT, _NEAR)


def _finds_the_cause(newer: _ReadRow, older: _ReadRow) -> bool:
    """Whether a row names the cause that another row only suspected."""
    same_session = newer.row.session_id == older.row.session_id
    return newer.finds_cause and same_session and older.row.category == "fact" and older.suspects


def _echoes(rows: Sequence[_ReadRow], found: Mapping[str, str]) -> dict[str, str]:
    """Return the rows of lower trust that repeat a value which was given up, even if they were written later."""
    by_id = {row.row.id: row for row in rows}
    given_up = [
        (by_id[new], {then.text for _, then in rivals(by_id[new].values, by_id[old].values)})
        for old, new in found.items()
    ]
    return {
        row.row.id: newer.row.id
        for newer, values in given_up
        for row in rows
        if row.row.id not in found and values and _is_echo(row, newer, values)
    }


def _is_echo(row: _ReadRow, newer: _ReadRow, given_up: set[str]) -> bool:
    if row.row.priority == "high" or at_least_as_trusted(row.row.trust, newer.row.trust):
        return False
    return given_up <= row.values.texts and _is_about_the_same(newer, row)
