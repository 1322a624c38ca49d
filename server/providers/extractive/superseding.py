"""Which earlier assertion a new one replaces, told by its words alone.

Three signs are trusted: the old value is named ("X instead of Y", "from Y to X", "no longer Y"), the same thing gets
another value ("the deploy target is …"), or the same is liked and disliked, allowed and forbidden, done and not done. A
correction replaces what was said last about its subject with another value. Two texts that say what they hold for
("for sessions", "in Python"), and say something else, are about different things whatever else they share. A row that
is replaced by mistake is lost to whoever asks; one that is not replaced is merely older. So in doubt nothing is.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from server.core import labels
from server.core.contradiction import contradicts, denied
from server.core.labels import without_label
from server.core.records import Fact, Memory
from server.core.similarity import Fingerprint, fingerprint, same_fact, same_subject
from server.core.terms import terms

_ASSERTED = ("decision", "preference", "fact", "state_change")
# How much an earlier row must be about the same as a correction, and as a row that names an old value. Where words are
# pairs of characters, there are many of them, and less is shared.
_SUBJECT_OF_CORRECTION = 0.5
_SUBJECT_OF_OLD_VALUE = 0.3
_SUBJECT_OF_OLD_VALUE_CJK = 0.1
# An ordinary word that is a value stands almost alone.
_MOST_WORDS = 2
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_OLD_VALUE = re.compile(
    r"\b(?:instead of|rather than|no longer(?: use| using)?|not any ?more|in place of|replac(?:e|es|ed|ing)|"
    r"(?:drop|dropped|dropping|ditch|ditched|abandon|abandoned|away from|off of)|"
    r"(?:switch|switched|switching|migrate|migrated|migrating|move|moved|moving|change|changed)(?: \S+){0,4}? from)"
    r" (?P<old>[^,.;:!?()]{2,60})"
    r"|\b(?:statt|anstatt|anstelle von|nicht mehr|au lieu de|à la place de|en lugar de|en vez de)"
    r" (?P<other>[^,.;:!?()]{2,60})"
    r"|(?:而不是|不再用|不再使用|取代) ?(?P<cjk>[^，。；：！？,.]{1,30})"
    r"|(?P<jp>[^，。、；：！？,.\s]{1,30}?)(?:ではなく|の代わりに|をやめて)",
    re.IGNORECASE,
)
_END_OF_VALUE = re.compile(
    r"\b(?:to|for|with|in|on|as|because|since|and|but|so|für|bei|weil|pour|dans|para|porque)\b|(?:には|では)",
    re.IGNORECASE,
)
# What something holds for: a purpose or an occasion, and a place, which can also be the value itself ("keep it in X").
_PURPOSE = re.compile(
    r"\b(?:for|during|before|after|when|while|if|unless|until|für|bei|vor|nach|wenn|pour|avant|après|quand|para"
    r"|antes de|después de|cuando) (?P<words>[^,.;:!?()]{2,60})"
    r"|(?P<jp>[^，。、；：！？,.\s]{1,12}?)(?:には|では(?!なく))"
    r"|(?:^|[，。；,])(?:我们|我|以后|现在|决定|把|不再|不|改){0,5}+(?P<cjk>[\u4e00-\u9fff]{2,8}?)(?:都|改|就|也)?用"
    r"(?=[A-Za-z0-9 ])",
    re.IGNORECASE,
)
_PLACE = re.compile(
    r"\b(?:in(?! (?:place|favou?r) of)|on|at|under|within|im|auf|dans|sur|en(?! (?:lugar|vez) de))"
    r" (?P<words>[^,.;:!?()]{2,60})",
    re.IGNORECASE,
)
_END_OF_SCOPE = re.compile(
    r"\b(?:instead of|rather than|in place of|not|and|but|because|since|from|statt|anstatt|anstelle von|au lieu de|à la"
    r" place de|en lugar de|en vez de|nehmen|verwenden|benutzen|now|please|again)\b",
    re.IGNORECASE,
)
_VALUE_OF = re.compile(
    r"^(?P<subject>(?:my|our|the|mein|meine|unser|unsere|mon|ma|notre|mi|nuestro|nuestra|el|la|le|der|die|das)"
    r" (?:[^\s,;:]+ ){1,5}?)(?:is|lives|heißt|ist|est|es) (?P<value>[^,;:!?()]{1,80})"
    r"|^(?:我们的|我的)?(?P<zh>[\u4e00-\u9fff]{2,12}?)(?:现在)?是(?P<zh_value>[A-Za-z0-9][^，。；：！？,;]{0,60})"
    r"|^(?P<jp>[^は、。，\s]{2,20})は(?P<jp_value>[A-Za-z0-9][^，。、；：！？,;]{0,60})",
    re.IGNORECASE,
)
# A value is something by name or number, as opposed to what it is like: "is Render", "is on Friday", not "is fast".
_VALUE = re.compile(
    r"(?:(?i:now|jetzt|maintenant|ahora)\s)?"
    r"(?P<where>(?:in|on|at|auf|im|am|à|en)\s)?(?:(?:the|a|an|der|die|das|le|la|el)\s)?"
    r"(?P<name>[\"“„«'`~/]?[A-ZÀ-ÖØ-Þ0-9]|[^\s]{0,60}[./_\d-][^\s])"
)
# Things whose value can be an ordinary word.
_SLOT = re.compile(r"\b(?:target|theme|colou?r|ziel|farbe|cible|couleur|destino) $", re.IGNORECASE)
# Things of which there are many at a time.
_LOOSE = re.compile(
    r"\b(?:problem|issue|bug|error|failure|reason|cause|culprit|point|thing|idea|question|answer|difference|result|fix"
    r"|goal|rest|example|option|alternative|candidate|one|step|reviewer|user|client|customer) $",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Said:
    """An assertion, under the name by which it can be replaced. `words` are its own, without what they answer."""

    name: str
    content: str
    words: str
    mark: Fingerprint
    old: frozenset[str]
    purpose: frozenset[str]
    place: frozenset[str]


def with_replaced(facts: Sequence[Fact], previous: Sequence[Memory]) -> list[Fact]:
    """Return facts, each with what it replaces: the id of a row, or the words of a fact before it."""
    earlier = [_said(row.id, row.content) for row in previous if _asserts(row)]
    marked: list[Fact] = []
    for fact in facts:
        asserts = _asserts(fact)
        said = _said(fact.content, fact.content) if asserts else None
        old = _replaced(said, earlier) if said and fact.trust == "user" and not fact.tentative else None
        marked.append(replace(fact, replaces=old) if old else fact)
        earlier += [said] if said else []
    return marked


def _asserts(row: Fact | Memory) -> bool:
    """Tell whether a row says what is so or is to be so: no question, no request, no file that was changed."""
    if row.category not in _ASSERTED or row.content.startswith(labels.ASKED):
        return False
    return row.trust == "user" or row.category != "state_change"


def _said(name: str, content: str) -> _Said:
    words = without_label(content).split(labels.IN_ANSWER, 1)[0]
    return _Said(
        name, content, words, fingerprint(content), _old_value(words), _after(_PURPOSE, words), _after(_PLACE, words)
    )


def _replaced(said: _Said, earlier: Sequence[_Said]) -> str | None:
    """Return the name of the latest earlier assertion that one replaces."""
    return next((other.name for other in reversed(earlier) if _replaces(said, other)), None)


def _replaces(said: _Said, other: _Said) -> bool:
    if same_fact(said.mark, other.mark) or _apart(said.purpose, other.purpose):
        return False
    if _corrects(said, other) or _another_value(said, other):
        return True
    elsewhere = _apart(said.place, other.place - said.old)
    return not elsewhere and (_names_old(said, other) or contradicts(said.mark, other.mark))


def _apart(one: frozenset[str], other: frozenset[str]) -> bool:
    """Tell whether both are named and share too little: words of two things can have a part in common."""
    return bool(one and other) and 2 * len(one & other) <= min(len(one), len(other))


def _names_old(said: _Said, other: _Said) -> bool:
    """Tell whether the value that is given up is what the other asserts, and not what it gives up or denies itself."""
    if not said.old or not said.old <= other.mark.terms - other.old or denied(other.mark) & said.old:
        return False
    least = _SUBJECT_OF_OLD_VALUE_CJK if _CJK.search(other.words) else _SUBJECT_OF_OLD_VALUE
    return same_subject(said.mark, other.mark) >= least


def _corrects(said: _Said, other: _Said) -> bool:
    """Tell whether a correction is about the same and gives it another value; each has something of its own."""
    if not said.content.startswith(labels.CORRECTION):
        return False
    differ = bool(other.mark.subject - said.mark.subject) and bool(said.mark.subject - other.mark.subject)
    return differ and same_subject(said.mark, other.mark) >= _SUBJECT_OF_CORRECTION


def _old_value(text: str) -> frozenset[str]:
    """Return the terms of the value that a text says is given up."""
    found = _OLD_VALUE.search(text)
    if not found:
        return frozenset()
    named = next(part for part in found.groups() if part)
    # In Japanese the value stands before its mark, and what it is for before the value.
    parts = _END_OF_VALUE.split(named)
    return frozenset(terms(parts[-1] if found["jp"] else parts[0]))


def _after(mark: re.Pattern[str], text: str) -> frozenset[str]:
    """Return the terms of what a text says it holds for, in the places that a pattern finds."""
    found = (next(part for part in match.groups() if part) for match in mark.finditer(text))
    return frozenset(term for words in found for term in terms(_END_OF_SCOPE.split(words, 1)[0]))


def _another_value(said: _Said, other: _Said) -> bool:
    """Tell whether both texts say what one and the same thing is, by name, and say something else."""
    now, then = _value_of(said.words), _value_of(other.words)
    if now is None or then is None:
        return False
    return now[:2] == then[:2] and not now[2] <= other.mark.terms


def _value_of(text: str) -> tuple[frozenset[str], str, frozenset[str]] | None:
    """Return what a text gives a value to, the preposition before the value, and the value, as terms."""
    found = _VALUE_OF.search(text)
    if not found:
        return None
    subject = found["subject"] or found["zh"] or found["jp"]
    said = found["value"] or found["zh_value"] or found["jp_value"]
    value = _VALUE.match(said)
    in_a_word = bool(_SLOT.search(subject)) and len(said.split()) <= _MOST_WORDS
    if _LOOSE.search(subject) or not (value or in_a_word):
        return None
    where = ((value and value["where"]) or "").strip().casefold()
    named = frozenset(terms(subject)), where, frozenset(terms(said))
    return named if named[0] and named[2] else None
