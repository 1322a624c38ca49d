"""Decides by words alone which earlier assertion a new one replaces, and which older one says otherwise.

A new assertion replaces an earlier one in four ways. It names the value that it gives up ("from X to Y", "Y, not X",
"X won't work, take Y"), and the earlier one has this value. It gives the same subject another value of the same kind,
and says that something changed, or the subject can have only one. It takes back, denies or refutes what was said, or
reports that what failed works. Or it settles what was left open: a plan is carried out, a choice is made. Words of
other people, conditions, plans, questions and additions replace nothing, nor does a statement with another scope.
A row that is replaced by mistake is lost to recall; one that is not replaced is merely old. So in doubt both stay, and
the newer one says that the older says otherwise.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import IntEnum

from esker.server.core.conversation.trust import at_least_as_trusted
from esker.server.core.facts.contradiction import contradicts, denied, negates, opposed
from esker.server.core.facts.records import Fact
from esker.server.core.facts.same_fact import same_fact, same_subject
from esker.server.core.records import Memory, Trust
from esker.server.core.text import labels
from esker.server.core.text.labels import without_label
from esker.server.core.words.scripts import CJK
from esker.server.providers.extractive import cues
from esker.server.providers.extractive.assertions import Assertion, Value, read_assertion
from esker.server.providers.extractive.grammar import places_of_software
from esker.server.providers.extractive.sentences import clip

_ASSERTED = ("decision", "preference", "fact")
# Categories of assertions of a person or an agent: "our gateway timeout is 30 seconds" is filed among the issues.
_REPORTED = ("issue", "state_change", "outcome")
# Minimum `same_subject` of an earlier row with a correction. A higher value replaces less.
_SUBJECT_OF_CORRECTION = 0.5
# Minimum share of the terms of a plan or an open choice that the assertion which settles it has.
_SETTLED = 0.6
# Maximum earlier rows that one assertion replaces: one statement was rarely made more often.
_MOST_REPLACED = 3
# Maximum assertions between a value without a subject ("make it 45") and the one that it belongs to.
_NEAREST = 3
# Maximum earlier assertions, the latest ones, that a term makes candidates, and maximum candidates: those that share
# most terms, and as many of the last. Higher values find more and take longer.
_MOST_SHARING, _MOST_ALIKE = 100, 20
# Maximum characters of an agent's row that a person's statement replaces. A higher value loses more of what else the
# row tells; a lower one leaves more overtaken rows.
_LONGEST_REPLACED = 200
# Maximum characters of the words that a note quotes.
_LONGEST_NOTE = 160
# Relations of a value that an order fixes.
_FIXING = ("uses", "sets", "at", "to")
_DIGITS = re.compile(r"\d+")
_FIRST_CJK = "\u3040"
_LETTER = re.compile(rf"[^\W{CJK}]")


_Told = tuple[Trust, Assertion]
"""An assertion with the trust of its speaker."""


class _Verdict(IntEnum):
    """The effect of a new assertion on an earlier one, the least first."""

    NOTHING = 0
    UNLIKE = 1
    REPLACES = 2


def with_replaced(facts: Sequence[Fact], previous: Sequence[Memory]) -> list[Fact]:
    """Return facts, each with the assertions it replaces: ids of rows and contents of earlier facts, one a line.

    A fact whose words do not name the subject of what it replaces quotes it; so does one that may replace a row.
    """
    earlier = _Earlier()
    for row in previous:
        if _asserts(row):
            earlier.add(row.trust, read_assertion(row.id, row.content))
    contents = {row.id: row.content for row in previous}
    judged: list[Fact] = []
    for fact in facts:
        said = read_assertion(fact.content, fact.content) if _asserts(fact) else None
        if said is None:
            judged.append(fact)
            continue
        replaceable: list[_Told] = [
            (trust, other)
            for trust, other in earlier.like(said)
            if _may_replace(fact, said, trust) and not (fact.trust != trust == "assistant" and _is_report(other))
        ]
        new, quoted = _with_verdict(fact, said, replaceable, contents)
        cited = {seq for other in judged if other.content in quoted for seq in other.source_seqs}
        judged.append(replace(new, source_seqs=tuple(sorted({*fact.source_seqs, *cited}))))
        earlier.add(fact.trust, read_assertion(new.content, new.content))
    return judged


class _Earlier:
    """The assertions before a new one, with their trust, by the terms that they contain.

    A term in too many of them distinguishes nothing; that bounds the comparisons of a long log.
    """

    def __init__(self) -> None:
        self._all: list[_Told] = []
        self._by_term: dict[str, list[int]] = defaultdict(list)

    def add(self, trust: Trust, said: Assertion) -> None:
        """Add the assertion that follows."""
        for term in _all_terms(said):
            self._by_term[term].append(len(self._all))
        self._all.append((trust, said))

    def like(self, said: Assertion) -> list[_Told]:
        """Return the assertions that share a term with a new one, and the last ones, by time."""
        shared = Counter(place for term in _all_terms(said) for place in self._by_term.get(term, ())[-_MOST_SHARING:])
        alike = sorted(shared, key=lambda place: (-shared[place], -place))[:_MOST_ALIKE]
        last = range(max(0, len(self._all) - _MOST_ALIKE), len(self._all))
        return [self._all[place] for place in sorted({*alike, *last})]


def _all_terms(said: Assertion) -> frozenset[str]:
    """Return every term by which two assertions can be about one thing."""
    subjects = (value.subject | value.terms for value in said.values)
    return frozenset[str]().union(said.terms, said.topic, said.fingerprint.subject, *subjects, *said.given_up)


def changes_value(sentence: str, known: Sequence[str]) -> bool:
    """Whether a sentence gives a subject of earlier rows or facts (their contents) another value."""
    said = read_assertion(sentence, sentence)
    earlier: list[_Told] = [("user", read_assertion(text, text)) for text in known]
    return any(verdict == _Verdict.REPLACES for verdict, _ in _judged(said, earlier))


def gives_lone_value(sentence: str) -> bool:
    """Whether a sentence fixes a value and leaves its subject to the words before it: "make it 45", "take 01:15"."""
    said = read_assertion(sentence, sentence)
    fixing = [value for value in said.values if value.relation.split()[0] in _FIXING and value.kind != "word"]
    return said.firm and not said.topic and bool(fixing) and not any(value.subject for value in said.values)


def _asserts(row: Fact | Memory) -> bool:
    """Whether a row is an assertion, and not a question, a request or a list of changed files."""
    if row.content.startswith(labels.ASKED):
        return False
    reports = row.trust in ("user", "assistant") and row.category in _REPORTED
    return labels.is_planned(row.content) or row.category in _ASSERTED or reports


def _may_replace(fact: Fact, said: Assertion, trust: Trust) -> bool:
    """Whether a fact may replace a row of some trust: it is a person's or agent's assertion, or the same speaker's."""
    if fact.tentative or not (fact.trust in ("user", "assistant") or said.speaker):
        return False
    return at_least_as_trusted(fact.trust, trust)


def _is_report(said: Assertion) -> bool:
    """Whether an agent tells so much at once that a person's remark on one thing does not replace it."""
    return len(said.statement) > _LONGEST_REPLACED or ";" in said.statement


def _with_verdict(
    fact: Fact, said: Assertion, earlier: Sequence[_Told], contents: Mapping[str, str]
) -> tuple[Fact, frozenset[str]]:
    """Return a fact with the assertions that it replaces or, if none, a note on one that it differs from.

    The names of the assertions whose words it quotes are returned beside it.
    """
    by_agent = fact.trust == "assistant" and not said.speaker
    if by_agent and fact.category != "outcome":
        return fact, frozenset()
    judged = _judged(said, earlier, by_agent=by_agent)
    replaced = [other for verdict, other in judged if verdict == _Verdict.REPLACES][:_MOST_REPLACED]
    if not replaced:
        unlike = next((other for verdict, other in judged if verdict == _Verdict.UNLIKE), None)
        older = _without(unlike.values, unlike.statement) if unlike else ""
        if unlike is None or not older:
            return fact, frozenset()
        return replace(fact, content=_noted(fact.content, labels.UNLIKE, older)), frozenset((unlike.name,))
    subject = next(filter(None, (_lacking(said, other, contents) for other in replaced)), "")
    names = (*(fact.replaces or "").splitlines(), *(other.name for other in replaced))
    quoted = frozenset(names if subject and not by_agent else ())
    content = _noted(fact.content, labels.REPLACES, subject) if quoted else fact.content
    return replace(fact, content=content, replaces="\n".join(dict.fromkeys(names))), quoted


def _noted(content: str, note: str, words: str) -> str:
    return f"{content}{note}{clip(words.rstrip('.。'), _LONGEST_NOTE)})"


def _lacking(said: Assertion, other: Assertion, contents: Mapping[str, str]) -> str:
    """Return the words by which an earlier assertion names a subject that a new one does not name; else nothing."""
    changed = [value for value in other.values if _has_changed(value, said)] or other.values  # the rest may hold
    values = frozenset[str]().union(*(value.terms for value in changed))
    lone = bool(said.values) and not said.topic
    lone = lone or any(value.subject and all(term[0] == "@" for term in value.subject) for value in other.values)
    missing = (other.terms if lone else other.topic) - values - said.terms
    own = _without(changed, other.statement) if missing else ""
    # The earlier assertion may take its subject from one before it.
    named = without_label(contents.get(other.name, other.name)).partition(labels.REPLACES)[2].removesuffix(")")
    return "; ".join(filter(None, (own, named)))


def _has_changed(value: Value, said: Assertion) -> bool:
    """Whether a new assertion gives up an earlier value, or has an amount of the same kind in its place."""
    given_up = any(old & value.terms for old in said.given_up)
    return given_up or (value.is_amount and any(value.kind == now.kind for now in said.values))


def _without(values: Sequence[Value], statement: str) -> str:
    """Return a statement without values: they are what changed."""
    for value in values:
        place = _whole(value.text, statement)
        if place >= 0:
            statement = statement[:place] + labels.LEFT_OUT + statement[place + len(value.text) :]
    return statement


def _whole(words: str, text: str) -> int:
    """Return the index in a text of words that are not parts of longer ones, or -1."""
    place = text.find(words)
    while place >= 0 and (_LETTER.match(text[place - 1 : place]) or _LETTER.match(text, place + len(words))):
        place = text.find(words, place + 1)
    return place


def _judged(said: Assertion, earlier: Sequence[_Told], *, by_agent: bool = False) -> list[tuple[_Verdict, Assertion]]:
    """Return the earlier assertions (by trust) that a new one replaces or differs from, the latest first.

    Of an agent's words only those that report work are compared: what it finds has many values, and few that changed.
    """
    if not said.firm:
        return []
    latest_first = [other for _, other in reversed(earlier)]
    moved = [] if by_agent else _moved(said, latest_first)
    verdicts = (
        _Verdict.REPLACES if other in moved else _verdict(said, other, by_agent=by_agent) for other in latest_first
    )
    found = [one for one in zip(verdicts, latest_first, strict=True) if one[0]]
    if by_agent or any(verdict == _Verdict.REPLACES for verdict, _ in found):
        return found
    # An agent's findings are not what "make it 45" is about.
    near = [other for trust, other in reversed(earlier) if trust == "user"][:_NEAREST]
    nearest = next((other for other in near if _answers_to(said, other) or _chooses(said, other)), None)
    return [(_Verdict.REPLACES, nearest)] if nearest and _is_comparable(said, nearest) else found


def _moved(said: Assertion, latest_first: Sequence[Assertion]) -> list[Assertion]:
    """Return the earlier assertions whose appointment a new one moves; none if there are several appointments."""
    comparable = (other for other in latest_first if _is_comparable(said, other))
    moved = [other for other in comparable if any(_reschedules(said, then) for then in other.values)]
    return moved if all(_related(moved[0].topic, other.topic) for other in moved[1:]) else []


def _reschedules(said: Assertion, then: Value) -> bool:
    """Whether an assertion moves an appointment and names its former day or hour: "Tuesday is out, make it Thursday".

    The appointment is not what takes place then instead: "the retro moved, Tuesday is the demo".
    """
    return then.kind in ("date", "clock") and any(
        now.kind == then.kind
        and (now.marked or said.given_up)
        and not now.subject
        and (said.terms - now.terms) & then.terms
        and not then.subject & said.terms
        for now in said.values
    )


def _verdict(said: Assertion, other: Assertion, *, by_agent: bool) -> _Verdict:
    if not _is_comparable(said, other):
        return _Verdict.NOTHING
    if other.open or by_agent:
        settled = _settles(said, other) if other.open else _passes(said, other)
        return _Verdict.REPLACES if settled else _Verdict.NOTHING
    if same_fact(said.fingerprint, other.fingerprint):
        return _Verdict.NOTHING
    if any(replaces(said, other) for replaces in (_corrects, _opposes, _refutes, _passes)):
        return _Verdict.REPLACES
    verdicts = {then: _about(said, then, other) for then in other.values}
    verdict = max(verdicts.values(), default=_Verdict.NOTHING)
    changed = frozenset[str]().union(*(then.subject for then, one in verdicts.items() if one == verdict))
    # If a row is about two things, one of them may still hold.
    held = [then for then, one in verdicts.items() if one < verdict and not then.lacks_verb]
    kept = any(then.subject and not then.subject & changed for then in held)
    return _Verdict.UNLIKE if kept and changed and verdict else verdict


def _settles(said: Assertion, other: Assertion) -> bool:
    """Whether an assertion carries out a plan, makes a choice, or decides a doubt that an earlier one leaves open."""
    if negates(said.fingerprint) and not negates(other.fingerprint):
        return False
    shared = len(said.terms & other.terms)
    if other.open == "choice":
        return 2 * shared >= len(other.terms) and any(value.terms <= other.terms for value in said.values)
    if shared > 1 and shared >= _SETTLED * len(other.terms):
        return True
    dates = ((now, then) for now in said.values for then in other.values if now.kind == then.kind == "date")
    return any(_compared(now, then, said, other) == _Verdict.REPLACES for now, then in dates)


def _chooses(said: Assertion, other: Assertion) -> bool:
    """Whether an assertion only names what an earlier one has not decided: "InfluxDB it is"."""
    lone = [value.terms for value in said.values if not value.subject]
    return other.open == "choice" and any(named and named <= other.terms for named in (said.terms, *lone))


def _about(said: Assertion, then: Value, other: Assertion) -> _Verdict:
    """Judge one value of an earlier assertion."""
    if _gives_up(said, then, other):
        return _Verdict.REPLACES
    return max((_compared(now, then, said, other) for now in said.values), default=_Verdict.NOTHING)


def _is_comparable(said: Assertion, other: Assertion) -> bool:
    """Whether both are of one speaker, and the new one names no environment, such as staging, that the other lacks."""
    elsewhere = (said.topic & places_of_software("environments")) - other.terms
    return said.speaker == other.speaker and bool(other.firm or other.open) and not elsewhere


def _gives_up(said: Assertion, value: Value, other: Assertion) -> bool:
    """Whether a new assertion gives up a value of an earlier one, and both are about the same."""
    topic = said.topic - frozenset[str]().union(*said.given_up)
    if any(_are_two_things(now, value) for now in said.values):
        return False
    handed_over = any(now.relation in ("start", "by") for now in said.values)
    for old in said.given_up:
        known = _is_value(old, value, handed_over=handed_over) and not old & denied(other.fingerprint)
        if not known or any(old <= given_up for given_up in other.given_up):
            continue
        if not topic or not value.subject or _related(topic, value.subject | (value.terms - old)):
            return True
    return False


def _are_two_things(one: Value, other: Value) -> bool:
    """Whether two subjects are things of one sort, each with a name of its own: "search service", "mail service"."""
    thing, other_thing = set(one.thing), set(other.thing)
    if not thing or not other_thing or one.thing[-1] != other.thing[-1]:
        return False
    return bool(thing - other_thing) and bool(other_thing - thing)


def _related(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two subjects share a term; of pairs of characters, they share at least half of the smaller one's."""
    shared = one & other
    return bool(shared) and (any(term < _FIRST_CJK for term in shared) or 2 * len(shared) >= min(len(one), len(other)))


def _is_value(old: frozenset[str], value: Value, *, handed_over: bool) -> bool:
    """Whether a value is given up: by its name, by a number of it, or by the person who hands it over."""
    return bool(old) and old <= value.terms | value.subject and (handed_over or bool(old & value.terms))


def _refutes(said: Assertion, other: Assertion) -> bool:
    """Whether an assertion names another cause than an earlier one: "it was not the belt, it was the sensor"."""
    if said.topic or not cues.CAUSE.search(other.statement):
        return False
    return any(old <= other.terms - denied(other.fingerprint) for old in said.given_up if old)


def _passes(said: Assertion, other: Assertion) -> bool:
    """Whether an assertion says that now works what an earlier one reports as failing: "all importer tests pass"."""
    if not said.works or not cues.ISSUE.search(other.statement) or cues.ISSUE.search(said.statement):
        return False
    failed = {term for term in other.terms if not term.isdigit()}
    works = {term for term in said.works if not term.isdigit()}
    return bool(works) and works <= failed and 2 * len(works) >= len(failed)


def _opposes(said: Assertion, other: Assertion) -> bool:
    """Whether both judge the same in opposite ways; "X instead of Y" denies neither X nor its purpose."""
    return (
        not other.given_up and not _apart(said.scope, other.scope) and contradicts(said.fingerprint, other.fingerprint)
    )


def _apart(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two scopes differ: both exist and share at most half of the smaller one's terms."""
    return bool(one and other) and 2 * len(one & other) <= min(len(one), len(other))


def _corrects(said: Assertion, other: Assertion) -> bool:
    """Whether a correction gives the same subject another value: each has terms that the other has not."""
    if not said.corrects:
        return False
    if said.fingerprint.subject & other.fingerprint.subject and opposed(said.fingerprint, other.fingerprint):
        return True
    denies = negates(said.fingerprint) != negates(other.fingerprint)
    if denies and 1 < len(other.fingerprint.subject & said.fingerprint.subject) == len(other.fingerprint.subject):
        return True
    if _apart(said.scope, other.scope):
        return False
    differ = bool(other.fingerprint.subject - said.fingerprint.subject) and bool(
        said.fingerprint.subject - other.fingerprint.subject
    )
    return differ and same_subject(said.fingerprint, other.fingerprint) >= _SUBJECT_OF_CORRECTION


def _compared(now: Value, then: Value, said: Assertion, other: Assertion) -> _Verdict:
    """Compare two values: for one subject, another is a change if it is marked, or if there can be only one."""
    marked, there = now.marked or said.corrects, other.terms - frozenset[str]().union(*other.given_up)
    if now.added or then.added or now.terms <= there or then.terms <= now.terms:
        return _Verdict.NOTHING
    same_kind = _is_numbered(now, then) or _same_kind(now, then, waived=said.corrects, marked=marked)
    # In "in the export the accents are broken" the place is not a thing that has a value.
    is_place = now.relation.startswith("at ") and then.relation == "is" and bool(then.scope) and not then.thing
    if not same_kind or is_place or _are_two_things(now, then):
        return _Verdict.NOTHING
    subject, former = _subjects(now, then)
    if now.relation == "to":
        # A word such as "de" may join the parts of a name, or precede a former value.
        subject = subject.union(*(part for part in said.given_up if part <= former))
        former -= said.terms & places_of_software("environments")
    if subject and subject == former:
        return _of_same(now, then, marked=marked)
    if not subject or not marked:
        return _Verdict.NOTHING
    if now.lacks_verb or then.lacks_verb:
        # A verb that is not known counts as a term of the subject.
        return _Verdict.UNLIKE if former and former < subject and len(subject - former) == 1 else _Verdict.NOTHING
    if subject & former and (said.loose | now.subject) & then.terms:
        return _Verdict.REPLACES  # it mentions the value that it changes
    return _of_less(now, then, former - subject) if subject <= other.terms else _of_more(now, subject, former)


def _of_same(now: Value, then: Value, *, marked: bool) -> _Verdict:
    """Compare the values of one subject."""
    if now.lacks_verb or then.lacks_verb:
        same_verb = now.relation == then.relation and now.is_amount
        return _Verdict.NOTHING if not marked else _Verdict.REPLACES if same_verb else _Verdict.UNLIKE
    if marked or _is_only_one(now, then):
        return _Verdict.REPLACES
    return _Verdict.UNLIKE if now.scope and now.relation == then.relation else _Verdict.NOTHING


def _of_more(now: Value, subject: frozenset[str], former: frozenset[str]) -> _Verdict:
    """Compare a value with that of a subject of fewer words: a part of it, unless the rest is a scope."""
    named = any(term[0] != "@" for term in former)
    return _Verdict.UNLIKE if named and former <= subject and not (subject - former) & now.scope else _Verdict.NOTHING


def _of_less(now: Value, then: Value, missing: frozenset[str]) -> _Verdict:
    """Compare a value with that of a subject of more words, of which the new one's lacks some."""
    if missing <= then.scope - places_of_software("environments") | places_of_software("live"):
        return _Verdict.REPLACES
    if then.thing and then.thing[-1] not in now.subject:
        return _Verdict.NOTHING
    return _Verdict.REPLACES if now.is_amount else _Verdict.UNLIKE


def _subjects(now: Value, then: Value) -> tuple[frozenset[str], frozenset[str]]:
    """Return the terms of both subjects; of two versions of one thing, the thing is part of the subject."""
    subject, former = now.subject, then.subject
    named, named_then = _without_digits(now), _without_digits(then)
    if named == named_then and named and named < now.terms and now.kind != "date":
        return subject | named, former | named
    if _is_numbered(now, then):
        return subject, former | named_then
    real, real_then = (frozenset(term for term in some if term[0] != "@") for some in (subject, former))
    return (real, real_then) if real and real_then else (subject, former)


def _without_digits(value: Value) -> frozenset[str]:
    return frozenset(term for term in value.terms if not term[0].isdigit())


def _is_numbered(now: Value, then: Value) -> bool:
    """Whether a number belongs to a thing that an earlier value names with one: "Postgres to 16", "Postgres 14"."""
    named = _without_digits(then)
    return now.kind == "number" and bool(named) and named < then.terms and named <= now.subject


def _same_kind(now: Value, then: Value, *, waived: bool, marked: bool) -> bool:
    kinds, places = {now.kind, then.kind}, {now.relation, then.relation}
    if len(places) == 2 and all(place.startswith("at ") for place in places) and kinds <= {"name", "word"}:
        return False  # "runs on port 8080" and "runs in Frankfurt" are both true
    if len(kinds) == 1 or (waived and now.relation == then.relation):
        return marked or now.kind != "word" or now.relation == then.relation
    if "number" in kinds:
        return not kinds & {"name", "word"}
    return marked and kinds == {"name", "word"}


def _is_only_one(now: Value, then: Value) -> bool:
    """Whether a subject can have only one such value: an amount or a date, or what the subject is said to be."""
    if now.is_amount:
        return True
    return now.relation == then.relation and now.relation.startswith("is")


def _answers_to(said: Assertion, other: Assertion) -> bool:
    """Whether a value without a subject ("make it 45"), or with one that the other names, takes its value's place."""
    about = said.topic - said.loose
    if not about <= other.terms or (said.given_up and not about) or not other.firm:
        return False
    alone = len(other.values) == 1
    lone = [now for now in said.values if not now.added and _is_about(now.subject - said.loose, other, alone=alone)]
    return any(_answers(now, then, said) and not now.terms <= other.terms for now in lone for then in other.values)


def _is_about(subject: frozenset[str], other: Assertion, *, alone: bool) -> bool:
    return not subject or (alone and subject <= other.terms and other.values[0].is_amount)


def _answers(now: Value, then: Value, said: Assertion) -> bool:
    if now.kind == then.kind == "number" and _DIGITS.sub("9", now.text) != _DIGITS.sub("9", then.text):
        return False  # "1e-4" is not a score like 0.797
    if not now.is_amount and (not said.corrects or now.relation != then.relation or now.relation == "is"):
        return False
    return (now.marked or said.corrects) and _same_kind(now, then, waived=False, marked=True)
