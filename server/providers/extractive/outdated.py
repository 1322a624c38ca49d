"""Finds the rows that a later row outdates: an older value of the same thing, a failure that was overcome.

A reflector reads in hindsight: it sees every row at once, with vectors. So besides the comparison of `superseding`, a
row outdates an earlier one if both are about the same thing and differ in one value of one kind: "VLAN 30" and "VLAN
38", "before_page" and "page_ready". It must have the right to: a ruling and a row of high priority are outdated only
by a speaker of at least the same trust, other rows also by the assistant. Two rows that also name different things
("staging" and "production" with a value each) are about different things, and a row that says more than its value
stays. In doubt nothing is outdated.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from esker.server.core.conversation.trust import at_least_as_trusted
from esker.server.core.facts.records import Fact
from esker.server.core.facts.same_fact import same_subject
from esker.server.core.records import Memory
from esker.server.core.text.languages import ENGLISH, STOP_WORDS, language_of
from esker.server.core.text.terms import terms
from esker.server.core.words.lists import Cue, words
from esker.server.providers.extractive import cues
from esker.server.providers.extractive.row_parts import CHANGES, DISTRUSTED, MARKED, UNDECIDED, RowParts
from esker.server.providers.extractive.superseding import with_replaced
from esker.server.providers.extractive.values import RowValue, rivals

# Minimum cosine of two rows, or minimum share of the subject, for them to be about the same thing. The lower ones are
# for a row that marks a change.
_NEAR, _NEAR_CHANGE = 0.6, 0.5
_SUBJECT, _SUBJECT_CHANGE = 0.5, 0.4
# Minimum terms that two rows about the same thing share besides their values.
_SHARED_TERMS = 2
# Maximum rows that a term makes candidates: the latest that contain it. A higher value finds more and takes longer.
_MOST_ROWS = 100
# Maximum earlier rows that a row is compared with: those that share most terms with it.
_MOST_ALIKE = 20
_RULINGS = ("decision", "preference")
# Categories of rows that can end an open matter.
_ENDS = (*CHANGES, "outcome")

_WITHDRAWN = Cue(*words("reflector.withdrawn"))
_WRONG = Cue(*words("assertions.wrong"))
_WORKS = Cue(*words("reflector.works"))
_CLAUSE_END = re.compile(r"[.,;:!?]\s+|[，。；：！？、]")
_IDENTIFIER = re.compile(r"[-_./]")
# Maximum words up to the name of what failed: "pytest: test_total fails".
_NAMED_WITHIN = 3
# Maximum words and characters up to the source that a report names: "The hotline says", "恒温箱屏幕显示".
_SOURCE_WITHIN, _LONGEST_SOURCE = 3, 30
_SENTENCE_END = re.compile(r"[.;!?]\s+|[。；！？]")
# Maximum rows between what the assistant said and the user's "no" to it.
_REFUSED_WITHIN = 3


class Hindsight:
    """Finds outdated rows. It remembers what it read and compared: a reflector asks again once other rows are gone."""

    def __init__(self, vectors: Mapping[str, Sequence[float]]) -> None:
        self._vectors = {name: np.array(vector, dtype=np.float32) for name, vector in vectors.items()}
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
            taken_back = (_withdrawn(newer, left), _called_wrong(newer, left), _refused(newer, just_said))
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
            self._compared[pair] = _outdates(newer, older)
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
        least = {other: 1 if is_one_enough or rows[other].is_undecided else _SHARED_TERMS for other in alike}
        yield row, [rows[other] for other in sorted(alike) if shared[other] >= least[other]]
        for term in subject:
            by_term[term].append(place)


def _withdrawn(newer: RowParts, earlier: Sequence[RowParts]) -> str | None:
    """Return the id of the latest ruling about the same thing, if the user takes one back."""
    if newer.memory.trust != "user" or not newer.asserts or not _WITHDRAWN.search(newer.text):
        return None
    rulings = (row for row in reversed(earlier) if row.memory.category in CHANGES and row.memory.trust == "user")
    latest = next((row for row in rulings if _share_enough(newer, row)), None)
    return latest.memory.id if latest else None


def _called_wrong(newer: RowParts, earlier: Sequence[RowParts]) -> str | None:
    """Return the id of the latest report about the same thing, if the user calls one wrong."""
    if newer.memory.trust != "user" or not newer.asserts or not _WRONG.search(newer.text):
        return None
    reports = (
        row for row in reversed(earlier) if row.memory.trust != "user" and row.memory.category in ("fact", "outcome")
    )
    same = (row for row in reports if newer.values.texts & row.values.texts and _share_enough(newer, row))
    return next((row.memory.id for row in same if row.memory.priority != "high"), None)


def _refused(newer: RowParts, earlier: Sequence[RowParts]) -> str | None:
    """Return the id of what the assistant said last about the same thing, if the user answers no."""
    no = cues.NO.match(newer.answer) if newer.memory.trust == "user" and newer.asserts else None
    if not no or newer.answer[no.end() : no.end() + 1].isspace():
        return None
    own = (row for row in reversed(earlier) if row.memory.trust == "assistant" and row.memory.priority != "high")
    same_session = (row for row in own if row.memory.session_id == newer.memory.session_id)
    return next((row.memory.id for row in same_session if _shared(newer, row)), None)


def _share_enough(newer: RowParts, older: RowParts) -> bool:
    """Whether two rows share enough terms or values to be about one thing."""
    return _shared(newer, older) >= _SHARED_TERMS


def _shared(newer: RowParts, older: RowParts) -> int:
    return len(newer.subject & older.subject) + len(newer.values.texts & older.values.texts)


def _outdates(newer: RowParts, older: RowParts) -> bool:
    if not newer.asserts or not _has_the_right(newer.memory, older.memory):
        return False
    if older.asks:
        return _answers(newer, older)
    if _is_later_status(newer, older) or _disbelieves(newer, older):
        return True
    if older.memory.category in ("issue", "next_step"):
        return _settles(newer, older) if older.is_undecided else _ends(newer, older)
    return _gives_another_value(newer, older) or _finds_the_cause(newer, older)


def _has_the_right(newer: Memory, older: Memory) -> bool:
    """Whether the speaker of a row may outdate another row; only the user outdates a ruling of the user."""
    if "manual" in (newer.kind, older.kind) or newer.said_at < older.said_at:
        return False
    if older.category in _RULINGS or older.priority == "high":
        return at_least_as_trusted(newer.trust, older.trust)
    return newer.trust in ("user", "assistant") or at_least_as_trusted(newer.trust, older.trust)


def _gives_another_value(newer: RowParts, older: RowParts) -> bool:
    """Whether a ruling or a change states another value of the same thing, or a measurement is repeated."""
    if newer.is_limited or not (newer.changes or _is_same_measurement(newer, older)):
        return False
    if newer.is_marked and _is_same_sentence(newer, older):
        return True
    found = rivals(newer.values, older.values)
    if not newer.changes and not all(then.is_number for _, then in found):
        return False  # measurements of two things
    if not found or not newer.is_firm:
        return False
    if _is_of_one_key(found):
        return True
    return not _have_other_subjects(found, newer, older) and _is_about_the_same(newer, older)


def _have_other_subjects(pairs: Sequence[tuple[RowValue, RowValue]], newer: RowParts, older: RowParts) -> bool:
    """Whether the values are of different things: of a narrower one, or each of a thing that the other lacks."""
    heads = {term for now, _ in pairs for term in terms(MARKED.sub(" ", now.head))}
    former_heads = {term for _, then in pairs for term in terms(then.head)}
    narrower, former = heads - older.said, former_heads - newer.said
    # Pairs of characters do not tell a verb from its subject; so the head must name the former subject.
    marked = newer.says_change or (newer.values.is_cjk and newer.is_marked and bool(heads & former_heads))
    return bool(narrower) and (bool(former) or not marked)


def _is_of_one_key(pairs: Sequence[tuple[RowValue, RowValue]]) -> bool:
    """Whether an identifier names what the values are of."""
    return any(now.key and now.key == then.key for now, then in pairs)


def _is_same_measurement(newer: RowParts, older: RowParts) -> bool:
    """Whether two rows differ in nothing but their values."""
    same = (newer.memory.trust, newer.memory.category) == (older.memory.trust, older.memory.category)
    return same and newer.values.frame == older.values.frame


def _is_same_sentence(newer: RowParts, older: RowParts) -> bool:
    """Whether two rows differ in nothing but values behind their verbs, and times."""
    pairs = zip(newer.values.values, older.values.values, strict=False)
    differ = [now for now, then in pairs if now.text != then.text]
    stated = all(now.stated or now.is_time for now in differ) and any(now.stated for now in differ)
    return stated and len(newer.values.values) == len(older.values.values) and _is_same_measurement(newer, older)


def _is_about_the_same(newer: RowParts, older: RowParts) -> bool:
    if newer.is_marked:
        return _is_near(newer, older, _SUBJECT_CHANGE, _NEAR_CHANGE)
    return _is_near(newer, older, _SUBJECT, _NEAR)


def _is_near(newer: RowParts, older: RowParts, subject: float, cosine: float) -> bool:
    """Whether two rows share enough of their subjects, or are near by meaning."""
    if len(newer.subject & older.subject) < _SHARED_TERMS:
        return False
    if _same_subject(newer, older) >= subject:
        return True
    if newer.values.is_cjk or newer.vector is None or older.vector is None:
        return False  # the bundled model knows little Chinese and Japanese
    return float(newer.vector @ older.vector) >= cosine


def _same_subject(newer: RowParts, older: RowParts) -> float:
    """Return from 0 to 1 how far two rows have one subject, whatever their values; that of the older counts double."""
    shared = len(newer.subject & older.subject)
    return (2 * shared / max(1, len(older.subject)) + shared / max(1, len(newer.subject))) / 3


def _ends(newer: RowParts, older: RowParts) -> bool:
    """Whether a row tells how a failure was overcome or how an open matter ended; a failure of weight stays."""
    if _makes_work(newer, older):
        return True
    if older.memory.priority == "high" or newer.memory.category not in _ENDS:
        return False
    if older.memory.category == "issue" and newer.memory.category != "outcome":
        return False
    given_up = older.values.texts - newer.values.texts
    if given_up and not rivals(newer.values, older.values):
        return False
    shared = {term for term in newer.fingerprint.subject & older.fingerprint.subject if not term.isdecimal()}
    return len(shared) >= _SHARED_TERMS and same_subject(newer.fingerprint, older.fingerprint) >= _SUBJECT


def _is_later_status(newer: RowParts, older: RowParts) -> bool:
    """Whether a tool reports the later state of the thing that both rows begin with, by its identifier."""
    if (newer.memory.trust, older.memory.trust) != ("tool", "tool") or older.memory.priority == "high":
        return False
    named, named_before = (row.text.partition(" ")[0].rstrip(":,") for row in (newer, older))
    same = named == named_before and bool(_IDENTIFIER.search(named))
    return same and newer.memory.category in _ENDS and newer.memory.session_id == older.memory.session_id


def _disbelieves(newer: RowParts, older: RowParts) -> bool:
    """Whether the user does not believe the source of a report, which its first words name."""
    reports = older.memory.trust in ("tool", "external") and older.memory.priority != "high"
    if not newer.distrusts or not reports or older.memory.category not in ("fact", "outcome"):
        return False
    opening = _CLAUSE_END.split(older.text)[0]
    source = frozenset(terms(" ".join(opening.split()[:_SOURCE_WITHIN])[:_LONGEST_SOURCE]))
    about = next(part for part in _SENTENCE_END.split(newer.text) if DISTRUSTED.search(part))
    return bool(source & frozenset(terms(about)) & older.fingerprint.subject)


def _makes_work(newer: RowParts, older: RowParts) -> bool:
    """Whether a row tells that what failed works, and names it by its identifier."""
    if (older.memory.category, newer.memory.category) != ("issue", "outcome") or not _WORKS.search(newer.text):
        return False
    failed = " ".join(older.text.split()[:_NAMED_WITHIN])
    shared = newer.fingerprint.particular & older.fingerprint.particular & frozenset(terms(failed))
    return any(not term.isdecimal() and _IDENTIFIER.search(term) for term in shared)


def _settles(newer: RowParts, older: RowParts) -> bool:
    """Whether a ruling of the user names most of the choice that a row leaves open, besides its names."""
    if newer.memory.trust != "user" or not newer.changes or not (undecided := UNDECIDED.search(older.text)):
        return False
    clause = _CLAUSE_END.split(older.text[: undecided.start()])[-1] or older.text[undecided.end() :]
    choice = set(terms(clause)) - STOP_WORDS[language_of(older.text) or ENGLISH] - older.values.names
    return 2 * len(choice & newer.fingerprint.terms) >= max(1, len(choice))


def _answers(newer: RowParts, older: RowParts) -> bool:
    """Whether a row answers a question of its session: it says something about the same thing later."""
    same_session = newer.memory.session_id == older.memory.session_id
    return same_session and older.memory.priority != "high" and _is_near(newer, older, _SUBJECT, _NEAR)


def _finds_the_cause(newer: RowParts, older: RowParts) -> bool:
    """Whether a row names the cause that another row only suspected."""
    same_session = newer.memory.session_id == older.memory.session_id
    return newer.finds_cause and same_session and older.memory.category == "fact" and older.suspects


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
    return given_up <= row.values.texts and _is_about_the_same(newer, row)
