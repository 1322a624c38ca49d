"""Whether a row outdates an earlier one: an older value of the same thing, or a failure that was overcome.

A row outdates an earlier one if both are about the same thing and differ in one value of one kind: "VLAN 30" and "VLAN
38", "before_page" and "page_ready". It must have the right to: a ruling and a row of high priority are outdated only
by a speaker of at least the same trust, other rows also by the assistant. Two rows that also name different things
("staging" and "production" with a value each) are about different things, as is a row that holds only where the older
one names no such place. A row that says more than its value stays. In doubt nothing is outdated.
"""

import re
from collections.abc import Sequence

from esker.server.core.conversation.trust import at_least_as_trusted
from esker.server.core.facts.same_fact import same_subject
from esker.server.core.records import Memory
from esker.server.core.text.languages import ENGLISH, STOP_WORDS, language_of
from esker.server.core.text.terms import terms
from esker.server.core.words.lists import Cue, words
from esker.server.providers.extractive import cues
from esker.server.providers.extractive.row_parts import CHANGES, DISTRUSTED, MARKED, UNDECIDED, RowParts
from esker.server.providers.extractive.values import RowValue, rivals

# Minimum cosine of two rows, or minimum share of the subject, for them to be about the same thing. The lower ones are
# for a row that marks a change.
_NEAR, _NEAR_CHANGE = 0.6, 0.5
_SUBJECT, _SUBJECT_CHANGE = 0.5, 0.4
SHARED_TERMS = 2
"""Minimum terms that two rows about the same thing share besides their values."""
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


def withdrawn(newer: RowParts, earlier: Sequence[RowParts]) -> str | None:
    """Return the id of the latest ruling about the same thing, if the user takes one back."""
    if newer.memory.trust != "user" or not newer.asserts or not _WITHDRAWN.search(newer.text):
        return None
    rulings = (row for row in reversed(earlier) if row.memory.category in CHANGES and row.memory.trust == "user")
    latest = next((row for row in rulings if _share_enough(newer, row)), None)
    return latest.memory.id if latest else None


def called_wrong(newer: RowParts, earlier: Sequence[RowParts]) -> str | None:
    """Return the id of the latest report about the same thing, if the user calls one wrong."""
    if newer.memory.trust != "user" or not newer.asserts or not _WRONG.search(newer.text):
        return None
    reports = (
        row for row in reversed(earlier) if row.memory.trust != "user" and row.memory.category in ("fact", "outcome")
    )
    same = (row for row in reports if newer.values.texts & row.values.texts and _share_enough(newer, row))
    return next((row.memory.id for row in same if row.memory.priority != "high"), None)


def refused(newer: RowParts, earlier: Sequence[RowParts]) -> str | None:
    """Return the id of what the assistant said last about the same thing, if the user answers no."""
    no = cues.NO.match(newer.answer) if newer.memory.trust == "user" and newer.asserts else None
    if not no or newer.answer[no.end() : no.end() + 1].isspace():
        return None
    own = (row for row in reversed(earlier) if row.memory.trust == "assistant" and row.memory.priority != "high")
    same_session = (row for row in own if row.memory.session_id == newer.memory.session_id)
    return next((row.memory.id for row in same_session if _shared(newer, row)), None)


def _share_enough(newer: RowParts, older: RowParts) -> bool:
    """Whether two rows share enough terms or values to be about one thing."""
    return _shared(newer, older) >= SHARED_TERMS


def _shared(newer: RowParts, older: RowParts) -> int:
    return len(newer.subject & older.subject) + len(newer.values.texts & older.values.texts)


def outdates(newer: RowParts, older: RowParts) -> bool:
    """Whether a row outdates an earlier one; see the module."""
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
    if newer.is_limited or newer.scope - older.said or not (newer.changes or _is_same_measurement(newer, older)):
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
    return not _have_other_subjects(found, newer, older) and is_about_the_same(newer, older)


def _have_other_subjects(pairs: Sequence[tuple[RowValue, RowValue]], newer: RowParts, older: RowParts) -> bool:
    """Whether the values are of different things: of a narrower one, or each of a thing that the other lacks."""
    heads = {term for now, _ in pairs for term in terms(MARKED.sub(" ", now.head))}
    former_heads = {term for _, then in pairs for term in terms(then.head)}
    narrower, former = heads - older.said, former_heads - newer.said
    # In CJK text, terms are pairs of characters, which do not tell a verb from its subject. So the head must name the
    # former subject.
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


def is_about_the_same(newer: RowParts, older: RowParts) -> bool:
    """Whether two rows are about the same thing; less is enough if the newer one marks a change."""
    if newer.is_marked:
        return _is_near(newer, older, _SUBJECT_CHANGE, _NEAR_CHANGE)
    return _is_near(newer, older, _SUBJECT, _NEAR)


def _is_near(newer: RowParts, older: RowParts, subject: float, cosine: float) -> bool:
    """Whether two rows share enough of their subjects, or are near by meaning."""
    if len(newer.subject & older.subject) < SHARED_TERMS:
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
    return len(shared) >= SHARED_TERMS and same_subject(newer.fingerprint, older.fingerprint) >= _SUBJECT


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
