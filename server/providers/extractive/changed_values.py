"""Compares a new value with an earlier one: whether both are of one subject, and only one of them can hold."""

from enum import IntEnum

from esker.server.core.facts.contradiction import denied
from esker.server.providers.extractive.assertions import Assertion
from esker.server.providers.extractive.clause_values import Value
from esker.server.providers.extractive.grammar import grammar_of, places_of_software

# Relations of a value that an order gives.
_ORDERED = ("uses", "sets")
# Minimum characters of a term that another one begins with.
_STEM = 4
_FIRST_CJK = "\u3040"
# Minimum characters of the last part of a compound word.
_HEAD = 4


class Effect(IntEnum):
    """The effect of a new assertion on an earlier one, the least first."""

    NOTHING = 0
    UNLIKE = 1
    REPLACES = 2


def compared(now: Value, then: Value, said: Assertion, other: Assertion) -> Effect:
    """Compare two values: for one subject, another is a change if it is marked, or if there can be only one."""
    mentions = _mentions(said, now, then)
    marked = now.marked or said.corrects or (mentions and now.relation in _ORDERED)
    there = other.terms - frozenset[str]().union(*other.given_up) - _excluded(other)
    if now.added or then.added or now.terms <= there or then.terms <= now.terms:
        return Effect.NOTHING
    comparable = _is_numbered(now, then) or same_kind(now, then, waived=said.corrects or mentions, marked=marked)
    # In "in the export the accents are broken" the place is not a thing that has a value.
    is_place = now.relation.startswith("at ") and then.relation == "is" and bool(then.scope) and not then.thing
    if not comparable or is_place or are_two_things(now, then):
        return Effect.NOTHING
    subject, former = _subjects(now, then)
    subject = _whole_subject(subject, now, said, former)
    former = _whole_subject(former, then, other, subject)
    if now.relation == "to":
        former -= (said.terms & places_of_software("environments")) - subject
    if subject and subject == former:
        return _of_same(now, then, marked=marked, corrects=said.corrects)
    if not subject or not marked:
        return Effect.NOTHING
    if _are_versions(now, then) and not now.subject:
        of_part = set(then.thing) - grammar_of(other.statement).whole
        return Effect.UNLIKE if of_part and not said.corrects else Effect.REPLACES
    if now.lacks_verb or then.lacks_verb:
        # A verb that is not known counts as a term of the subject.
        nested = former and (former < subject or subject < former)
        if not nested or len(subject ^ former) != 1:
            return Effect.NOTHING
        names_former = then.terms <= said.terms or (said.corrects and now.relation == then.relation)
        return Effect.REPLACES if names_former and now.kind == then.kind else Effect.UNLIKE
    if subject & former and (mentions or now.subject & then.terms):
        return Effect.REPLACES
    return _of_less(now, then, former - subject) if subject <= other.terms else _of_more(now, subject, former)


def _excluded(said: Assertion) -> frozenset[str]:
    """Return the terms that an assertion excludes beside what it asserts: "with cookies, no JWT"."""
    excluded = denied(said.fingerprint)
    return excluded if excluded < said.fingerprint.terms else frozenset()


def _whole_subject(subject: frozenset[str], value: Value, said: Assertion, other: frozenset[str]) -> frozenset[str]:
    """Return a subject with what its clause seems to give up, if that is part of another subject.

    A word such as "de" may join the parts of a name, or precede a former value.
    """
    return subject.union(*(part for part in said.given_up if part <= other)) if value.relation == "to" else subject


def _of_same(now: Value, then: Value, *, marked: bool, corrects: bool) -> Effect:
    """Compare the values of one subject; `corrects`: the new assertion takes back what was said before."""
    if now.lacks_verb or then.lacks_verb:
        same_verb = now.relation.split()[-1] == then.relation.split()[-1]
        is_change = same_verb and (now.is_amount or corrects or _is_tool(now, then))
        return Effect.NOTHING if not marked else Effect.REPLACES if is_change else Effect.UNLIKE
    if marked or _is_only_one(now, then):
        return Effect.REPLACES
    return Effect.UNLIKE if now.scope and now.relation == then.relation else Effect.NOTHING


def _is_tool(now: Value, then: Value) -> bool:
    """Whether both values are what one verb is done with: "format with X". Many things are done in several places."""
    return now.relation == then.relation and now.relation.startswith("verbless by")


def _of_more(now: Value, subject: frozenset[str], former: frozenset[str]) -> Effect:
    """Compare a value with that of a subject of fewer words: a part of it, unless the rest is a scope."""
    named = any(term[0] != "@" for term in former)
    return Effect.UNLIKE if named and former <= subject and not (subject - former) & now.scope else Effect.NOTHING


def _of_less(now: Value, then: Value, missing: frozenset[str]) -> Effect:
    """Compare a value with that of a subject of more words, of which the new one's lacks some."""
    if missing <= then.scope - places_of_software("environments") | places_of_software("live"):
        return Effect.REPLACES
    if then.thing and then.thing[-1] not in now.subject:
        return Effect.NOTHING
    return Effect.REPLACES if now.is_amount else Effect.UNLIKE


def _subjects(now: Value, then: Value) -> tuple[frozenset[str], frozenset[str]]:
    """Return the terms of both subjects; of two versions of one thing, the thing is part of the subject."""
    subject, former = now.subject, then.subject
    named_then = _without_digits(then)
    if _are_versions(now, then):
        return subject | named_then, former | named_then
    if _is_numbered(now, then):
        return subject, former | named_then
    heads = {whole: term for whole in former - subject for term in subject if _is_head(term, whole)}
    former = frozenset(heads.get(whole, whole) for whole in former)
    real, real_then = (frozenset(term for term in some if term[0] != "@") for some in (subject, former))
    return (real, real_then) if real and real_then else (subject, former)


def _is_head(term: str, compound: str) -> bool:
    """Whether a term is the last part of a compound: "Frist" of "Abgabefrist"."""
    return len(term) >= _HEAD and compound.endswith(term)


def _are_versions(now: Value, then: Value) -> bool:
    """Whether two values are one name with different numbers: "Java 21", "Java 17"."""
    named = _without_digits(now)
    return bool(named) and named == _without_digits(then) and named < now.terms and now.kind != "date"


def _mentions(said: Assertion, now: Value, then: Value) -> bool:
    """Whether an assertion names the number that it changes, or the person whose place another takes."""
    takes_place = now.relation in ("start", "by") and then.terms <= said.terms - now.terms
    return takes_place or bool(said.loose & then.terms)


def _without_digits(value: Value) -> frozenset[str]:
    return frozenset(term for term in value.terms if not term[0].isdigit())


def _is_numbered(now: Value, then: Value) -> bool:
    """Whether a number belongs to a thing that an earlier value names with one: "Postgres to 16", "Postgres 14"."""
    named = _without_digits(then)
    return now.kind == "number" and bool(named) and named < then.terms and named <= now.subject


def same_kind(now: Value, then: Value, *, waived: bool, marked: bool) -> bool:
    """Whether one value can take the place of the other; in a `marked` change also a name that of a word.

    `waived`: their kinds may differ, since the new assertion corrects or names the other.
    """
    kinds, places = {now.kind, then.kind}, {now.relation, then.relation}
    if len(places) == 2 and all(place.startswith("at ") for place in places) and kinds <= {"name", "word"}:
        return False  # "runs on port 8080" and "runs in Frankfurt" are both true
    if len(kinds) == 1 or (waived and now.relation == then.relation):
        return marked or now.kind != "word" or now.relation == then.relation
    if "number" in kinds:
        return waived or not kinds & {"name", "word"}
    return marked and kinds == {"name", "word"}


def _is_only_one(now: Value, then: Value) -> bool:
    """Whether a subject can have only one such value: an amount or a date, or what the subject is said to be."""
    if now.is_amount:
        return True
    return now.relation == then.relation and now.relation.startswith("is")


def are_two_things(one: Value, other: Value) -> bool:
    """Whether two subjects are things of one sort, each with a name of its own: "search service", "mail service"."""
    thing, other_thing = set(one.thing), set(other.thing)
    if not thing or not other_thing or one.thing[-1] != other.thing[-1]:
        return False
    return bool(thing - other_thing) and bool(other_thing - thing)


def related(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two subjects share a term; of pairs of characters, they share at least half of the smaller one's."""
    shared = {term for term in one for again in other if term == again or is_form(term, again)}
    return bool(shared) and (any(term < _FIRST_CJK for term in shared) or 2 * len(shared) >= min(len(one), len(other)))


def is_form(term: str, other: str) -> bool:
    """Whether one term begins with the other, as "Chefin" with "Chef"."""
    return min(len(term), len(other)) >= _STEM and (term.startswith(other) or other.startswith(term))
