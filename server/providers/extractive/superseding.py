"""Which earlier assertion a new one replaces, told by its words alone.

Three signs are trusted: the old value is named ("X instead of Y", "from Y to X", "no longer Y"), the same thing gets
another value ("the deploy target is …"), or the same is liked and disliked, allowed and forbidden, done and not done. A
correction replaces what was said last about its subject.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from server.core import labels
from server.core.contradiction import contradicts
from server.core.labels import without_label
from server.core.records import Fact, Memory
from server.core.similarity import Fingerprint, fingerprint, same_fact, same_subject
from server.core.terms import terms

_ASSERTED = ("decision", "preference", "fact", "state_change")
# How much an earlier row must be about the same as a correction, and as a row that names an old value.
_SUBJECT_OF_CORRECTION = 0.5
_SUBJECT_OF_OLD_VALUE = 0.3
_OLD_VALUE = re.compile(
    r"\b(?:instead of|rather than|no longer(?: use| using)?|not any ?more|in place of|replac(?:e|es|ed|ing)|"
    r"(?:drop|dropped|dropping|ditch|ditched|abandon|abandoned|away from|off of)|"
    r"(?:switch|switched|switching|migrate|migrated|migrating|move|moved|moving|change|changed)(?: \S+){0,4}? from)"
    r" (?P<old>[^,.;:!?()]{2,60})"
    r"|\b(?:statt|anstatt|anstelle von|nicht mehr|au lieu de|à la place de|en lugar de|en vez de)"
    r" (?P<other>[^,.;:!?()]{2,60})"
    r"|(?:而不是|不再用|不再使用|取代) ?(?P<cjk>[^，。；：！？,.]{1,30})"
    r"|(?P<jp>[^，。、；：！？,.\s]{1,30})(?:ではなく|の代わりに|をやめて)",
    re.IGNORECASE,
)
_END_OF_VALUE = re.compile(r"\b(?:to|for|with|because|since|and|but|so|für|weil|pour|para|porque)\b", re.IGNORECASE)
_VALUE_OF = re.compile(
    r"^(?P<subject>(?:my|our|the|mein|meine|unser|unsere|mon|ma|notre|mi|nuestro|nuestra) (?:\S+ ){1,5}?)"
    r"(?:is|are|lives? in|lives? on|runs? on|runs? at|uses?|heißt|ist|läuft auf|est|es)\b(?! not\b)(?P<value>.{1,80})$",
    re.IGNORECASE,
)


def with_replaced(facts: Sequence[Fact], previous: Sequence[Memory]) -> list[Fact]:
    """Return facts, each with what it replaces: the id of a row, or the words of a fact before it."""
    earlier = [(row.id, row.content) for row in previous if row.category in _ASSERTED]
    marked: list[Fact] = []
    for fact in facts:
        if fact.trust == "user" and fact.category in _ASSERTED and (old := _replaced(fact, earlier)):
            marked.append(replace(fact, replaces=old))
        else:
            marked.append(fact)
        if fact.category in _ASSERTED:
            earlier.append((fact.content, fact.content))
    return marked


def _replaced(fact: Fact, earlier: Sequence[tuple[str, str]]) -> str | None:
    """Return the name of the latest earlier text that a fact replaces."""
    mark = fingerprint(fact.content)
    text = without_label(fact.content)
    old = _old_value(text)
    correction = fact.content.startswith(labels.CORRECTION)
    for name, content in reversed(earlier):
        other = fingerprint(content)
        if same_fact(mark, other):
            continue
        about = same_subject(mark, other)
        names_old = bool(old) and old <= other.terms and about >= _SUBJECT_OF_OLD_VALUE
        corrected = correction and about >= _SUBJECT_OF_CORRECTION
        if names_old or corrected or contradicts(mark, other) or _another_value(text, without_label(content), other):
            return name
    return None


def _old_value(text: str) -> frozenset[str]:
    """Return the terms of the value that a text says is given up."""
    found = _OLD_VALUE.search(text)
    if not found:
        return frozenset()
    named = next(part for part in found.groups() if part)
    return frozenset(terms(_END_OF_VALUE.split(named, 1)[0]))


def _another_value(text: str, earlier: str, mark: Fingerprint) -> bool:
    """Tell whether both texts say what one and the same thing is, and say something else."""
    now, then = _VALUE_OF.search(text), _VALUE_OF.search(earlier)
    if not now or not then:
        return False
    subject = set(terms(now["subject"]))
    same = bool(subject) and subject == set(terms(then["subject"]))
    return same and not set(terms(now["value"])) <= mark.terms
