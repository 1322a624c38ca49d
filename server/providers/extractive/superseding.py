"""Finds the earlier rows and facts that each new fact replaces, and notes an older one that says otherwise.

`replacing` has the rules for two assertions; here is decided which assertions are compared, by the right of their
speakers, and which words of the earlier one the newer one quotes so that it names its subject.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from esker.server.core.conversation.trust import at_least_as_trusted
from esker.server.core.facts.records import Fact
from esker.server.core.records import Memory, Trust
from esker.server.core.text import labels
from esker.server.core.text.labels import without_label
from esker.server.core.words.scripts import CJK
from esker.server.providers.extractive.assertions import Assertion, in_context, read_assertion
from esker.server.providers.extractive.changed_values import Effect
from esker.server.providers.extractive.clause_values import Value
from esker.server.providers.extractive.replacing import Told, effects
from esker.server.providers.extractive.sentences import clip
from esker.server.providers.extractive.value_kinds import amounts_in, form_of
from esker.server.providers.extractive.values import read_values

_ASSERTED = ("decision", "preference", "fact")
# Categories of assertions of a person or an agent: "our gateway timeout is 30 seconds" is filed among the issues.
_REPORTED = ("issue", "state_change", "outcome")
# Maximum earlier rows that one assertion replaces: one statement was rarely made more often.
_MOST_REPLACED = 3
# Maximum earlier assertions, the latest ones, that a term makes candidates, and maximum candidates: those that share
# most terms, and as many of the last. Higher values find more and take longer.
_MOST_SHARING, _MOST_ALIKE = 100, 20
# Relations of a value that an order fixes.
_FIXING = ("uses", "sets", "at", "to", "is")
# Relations of a value that a statement gives; of "start" it is a person who has a task.
_STATING = ("is", "uses", "at", "start")
_LETTER = re.compile(rf"[^\W{CJK}]")


def with_replaced(facts: Sequence[Fact], previous: Sequence[Memory]) -> list[Fact]:
    """Return facts, each with the assertions it replaces: ids of rows and contents of earlier facts, one a line.

    A fact whose words do not name the subject of what it replaces quotes it; so does one that may replace a row.
    """
    earlier = _Earlier()
    for row in previous:
        if _asserts(row):
            earlier.add(row.trust, in_context(read_assertion(row.id, row.content)))
    contents = {row.id: row.content for row in previous}
    told = {row.id for row in previous if row.trust == "user" and row.category == "fact"}
    judged: list[Fact] = []
    for fact in facts:
        said = read_assertion(fact.content, fact.content) if _asserts(fact) else None
        if said is None:
            judged.append(fact)
            continue
        # A report of work that was done overtakes what a person told, and no decision of theirs.
        reports = fact.trust == "assistant" and fact.category == "outcome" and not fact.tentative
        # Rows that were said later exist if a slice is observed again.
        later = {row.id for row in previous if row.said_at > fact.said_at}
        replaceable: list[Told] = [
            (trust, other)
            for trust, other in earlier.like(said)
            if other.name not in later and (_may_replace(fact, said, trust) or (reports and other.name in told))
        ]
        new, quoted = _with_effect(fact, said, replaceable, contents)
        cited = {seq for other in judged if other.content in quoted for seq in other.source_seqs}
        judged.append(replace(new, source_seqs=tuple(sorted({*fact.source_seqs, *cited}))))
        if (place := _confirmed(fact, said, judged[:-1])) is not None:
            others = [told for told in earlier.like(said) if told[1].name not in (later | {judged[place].content})]
            judged[place] = _with_confirmed(judged[place], said, others)
        earlier.add(fact.trust, in_context(read_assertion(new.content, new.content)))
        told |= {new.content} if fact.trust == "user" and fact.category == "fact" else set()
    return judged


class _Earlier:
    """The assertions before a new one, with their trust, by the terms that they contain.

    A term in too many of them distinguishes nothing; that bounds the comparisons of a long log.
    """

    def __init__(self) -> None:
        self._all: list[Told] = []
        self._by_term: dict[str, list[int]] = defaultdict(list)

    def add(self, trust: Trust, said: Assertion) -> None:
        """Add the assertion that follows."""
        for term in _all_terms(said):
            self._by_term[term].append(len(self._all))
        self._all.append((trust, said))

    def like(self, said: Assertion) -> list[Told]:
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
    earlier: list[Told] = [("user", in_context(read_assertion(text, text))) for text in known]
    return any(effect == Effect.REPLACES for effect, _ in effects(said, earlier))


def sets_amount(sentence: str) -> bool:
    """Whether a sentence gives something that it names an amount: "set the session lifetime to 30 minutes"."""
    said = read_assertion(sentence, sentence)
    return said.firm and any(
        value.is_amount and value.subject and value.relation.split()[0] in ("sets", "to") for value in said.values
    )


def states_value(sentence: str) -> bool:
    """Whether a sentence says which amount, date or name something that it names has: "Das Lager ist in Kassel"."""
    said = read_assertion(sentence, sentence)
    stated = (value for value in said.values if value.kind != "word" and value.relation.split()[0] in _STATING)
    return said.firm and any(value.thing or (value.relation == "start" and value.subject) for value in stated)


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


def _with_effect(
    fact: Fact, said: Assertion, earlier: Sequence[Told], contents: Mapping[str, str]
) -> tuple[Fact, frozenset[str]]:
    """Return a fact with the assertions that it replaces or, if none, a note on one that it differs from.

    The names of the assertions whose words it quotes are returned beside it.
    """
    by_agent = fact.trust == "assistant" and not said.speaker
    if by_agent and not (fact.category == "outcome" or said.corrects or said.explains or said.marked):
        return fact, frozenset()
    found = effects(said, earlier, by_agent=by_agent)
    replaced = [other for effect, other in found if effect == Effect.REPLACES][:_MOST_REPLACED]
    if replaced and not by_agent:
        echoes = (other for trust, other in earlier if trust == "assistant" or not other.firm)
        replaced += [other for other in echoes if other not in replaced and _echoes(other, said, replaced)]
    if not replaced:
        unlike = next((other for effect, other in found if effect == Effect.UNLIKE), None)
        older = _without(unlike.values, unlike.statement) if unlike else ""
        if unlike is None or not older:
            return fact, frozenset()
        return replace(fact, content=_noted(fact.content, labels.UNLIKE, older)), frozenset((unlike.name,))
    subject = next(filter(None, (_lacking(said, other, contents) for other in replaced)), "")
    names = (*(fact.replaces or "").splitlines(), *(other.name for other in replaced))
    quoted = frozenset(names if subject and not by_agent else ())
    content = _noted(fact.content, labels.REPLACES, subject) if quoted else fact.content
    return replace(fact, content=content, replaces="\n".join(dict.fromkeys(names))), quoted


def _confirmed(fact: Fact, said: Assertion, judged: Sequence[Fact]) -> int | None:
    """Return the index of a person's last fact if it fixes or changes an amount, and an agent's fact tells it again."""
    if fact.trust != "assistant" or fact.tentative or said.speaker:
        return None
    before = (place for place, other in enumerate(judged) if other.trust == "user" and other.said_at <= fact.said_at)
    last = max(before, default=None)
    if last is None:
        return None
    wanted = read_assertion("", judged[last].content)
    told, fixed = ({spot.text for spot in amounts_in(one.statement)} for one in (said, wanted))
    fixes = wanted.firm and (wanted.marked or any(value.marked for value in wanted.values))
    return last if fixes and told and told <= fixed else None


def _with_confirmed(asked: Fact, said: Assertion, earlier: Sequence[Told]) -> Fact:
    """Return a person's fact with the assertions that it replaces in the words in which an agent confirmed it.

    "Make the alert fire at 2000" changes a limit; only the answer "The alert fires at more than 2000 jobs" says which.
    """
    found = effects(said, earlier)
    replaced = [other.name for effect, other in found if effect == Effect.REPLACES][:_MOST_REPLACED]
    names = dict.fromkeys([*(asked.replaces or "").splitlines(), *replaced])
    return replace(asked, replaces="\n".join(names) or None)


def _echoes(report: Assertion, said: Assertion, replaced: Sequence[Assertion]) -> bool:
    """Whether a report, or what others say, names a value that was given up, and no other.

    "Changed the draft to 15 to 17 May", "Ines says account_ref". A path is where the work was done.
    """
    named = frozenset(text for text in read_values(report.statement).texts if "/" not in text)
    for other in replaced:
        given_up = [value for value in other.values if _has_changed(value, said)]
        texts = [read_values(value.text).texts for value in given_up]
        about = (other.terms | said.terms).difference(*(value.terms for value in given_up))
        if any(
            named and named == text and (len(text) > 1 or any("_" in one for one in text) or report.terms & about)
            for text in texts
        ):
            return report not in replaced
    return False


def _noted(content: str, note: str, words: str) -> str:
    return f"{content}{note}{clip(words.rstrip('.。'), labels.LONGEST_NOTE)})"


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
    return labels.BETWEEN_QUOTATIONS.join(filter(None, (own, named)))


def _has_changed(value: Value, said: Assertion) -> bool:
    """Whether a new assertion gives up an earlier value, or has one of the same kind or form in its place."""
    given_up = any(old & value.terms for old in said.given_up)
    same_form = any(form_of(value.text) == form_of(now.text) for now in said.values)
    return given_up or same_form or (value.is_amount and any(value.kind == now.kind for now in said.values))


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
