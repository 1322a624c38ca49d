"""Reads an assertion by its words alone: its subject, its scope, its values, and the value that it gives up.

`superseding` compares the results. The patterns are English, German, French, Spanish, Chinese and Japanese; a part that
none of them finds stays empty, and nothing is replaced because of it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from esker.server.core.facts.contradiction import negates
from esker.server.core.facts.similarity import Fingerprint, fingerprint
from esker.server.core.text import labels
from esker.server.core.text.labels import without_label
from esker.server.core.text.terms import terms
from esker.server.core.words.scripts import CJK

# Maximum words of a value that is an ordinary word; a longer phrase is a description.
_MOST_WORDS = 2
_CJK = re.compile(rf"[{CJK}]")
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
# The scope of an assertion: a purpose or occasion, or a place, which can also be the value itself ("keep it in X").
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
# A value is a name or a number, not a property: "is Render", "is on Friday", not "is fast".
_VALUE = re.compile(
    r"(?:(?i:now|jetzt|maintenant|ahora)\s)?"
    r"(?P<where>(?:in|on|at|auf|im|am|à|en)\s)?(?:(?:the|a|an|der|die|das|le|la|el)\s)?"
    r"(?P<name>[\"“„«'`~/]?[A-ZÀ-ÖØ-Þ0-9]|[^\s]{0,60}[./_\d-][^\s])"
)
# Subjects whose value can be an ordinary word.
_SLOT = re.compile(r"\b(?:target|theme|colou?r|ziel|farbe|cible|couleur|destino) $", re.IGNORECASE)
# Subjects of which many exist at a time, so that a new one replaces none.
_LOOSE = re.compile(
    r"\b(?:problem|issue|bug|error|failure|reason|cause|culprit|point|thing|idea|question|answer|difference|result|fix"
    r"|goal|rest|example|option|alternative|candidate|one|step|reviewer|user|client|customer) $",
    re.IGNORECASE,
)

# The opening of a correction, which is not part of the statement.
_OPENER = re.compile(
    r"^(?:(?:(?:no|nope|wait|hold on|sorry|oops|hmm|oh|ok|okay|well|correction|nein|doch|moment|falsch|non|pardon"
    r"|perdón)(?:[,.:;!—–]| [—–-])"
    r"|(?:actually|scratch that|scrap that|on second thought|eigentlich|en fait|en realidad)\b)"
    r"[ ,.:;!—–-]{0,4}){1,4}"
    r"|^(?:不对|不是|其实|错了|更正|いや|違います|違う|訂正|実は)[，、。：,.: ]{0,3}",
    re.IGNORECASE,
)
# Openings that name the speaker or a decision; the statement is the same without them.
_LEAD = re.compile(
    r"^(?:(?:we(?: have|['’]ve|['’]ll| will|['’]re| are)?|i|let['’]?s|please|just|decided to|wir|nous|bitte) ){1,4}"
    r"|^(?:我们|我|请){1,2}",
    re.IGNORECASE,
)
_DAY = (
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:mon|diens|donners|frei|sams|sonn)tags?|mittwochs?|lundi|mardi"
    r"|mercredi|jeudi|vendredi|samedi|dimanche|lunes|martes|miércoles|jueves|viernes|sábado|domingo"
    r"|january|february|march|april|june|july|august|september|october|november|december"
)
_TIMES = (
    r"(?:milli)?seconds?|secs?|ms|s|minutes?|mins?|hours?|hrs?|h|days?|nights?|weeks?|months?|years?"
    r"|sekunden?|minuten?|stunden?|tage?n?|wochen?|monate?n?|jahre?n?|secondes?|heures?|jours?|semaines?|mois|ans?"
    r"|segundos?|minutos?|horas?|días?|semanas?|mes(?:es)?|años?|小时|分钟|秒|天|周|個月|个月|年|時間|分|日|週間"
)
_SIZES = r"[kmgt]i?b|bytes?|(?:kilo|mega|giga|tera)bytes?"
_COUNTED = (
    r"%|percent|prozent|px|pixels?|characters?|chars?|columns?|lines?|spaces|times|retries|attempts|requests|connections"
    r"|workers?|replicas?|threads|euros?|dollars?|zeichen|zeilen|versuche|caractères|lignes|caracteres|líneas|次|回|文字"
)
_NUMBER_WORD = (
    r"\d[\d.,]{0,9}|an?|one|two|three|four|five|six|ten|few|a few|several|a couple of|eine?n?|zwei|drei|vier|fünf|sechs"
    r"|zehn|une?|deux|trois|quatre|cinq|dix|una?|dos|tres|cuatro|cinco|diez"
)
# Durations and deadlines, which do not distinguish two assertions.
_WHEN = re.compile(
    r"\b(?:for|until|till|during|before|after|für|bis|vor|nach|pour|pendant|avant|après|para|por|durante|hasta"
    r"|antes de|después de) (?:(?:about|at least|at most|up to|another|the|next|this|el|la|los|las|le|les|die) ){0,2}"
    rf"(?:(?:{_NUMBER_WORD})[ -]?(?:{_TIMES})|now|good|ever|moment|time being|today|tomorrow|tonight|week|month|year"
    rf"|jetzt|morgen|heute|l['’]instant|moment|demain|ahora|mañana|{_DAY}|\d{{1,2}}(?::\d\d)?(?: ?[ap]m)?)"
    r"(?![^\s,.;:!?)])",
    re.IGNORECASE,
)
# Words that mark a change: the statement holds from now on.
_CHANGE = re.compile(
    r"[ ,]{0,2}\b(?:from now on|as of (?:now|today)|now|again|ab jetzt|ab sofort|jetzt|nun|wieder|désormais|dorénavant"
    r"|maintenant|de nouveau|a partir de ahora|ahora|de nuevo|otra vez)\b[ ,]{0,2}"
    r"|从现在(?:起|开始)[，,]?|现在|又|今は、?|今後は、?|これからは、?",
    re.IGNORECASE,
)
# The old value, which a text often names beside the new one.
_GIVEN_UP = re.compile(
    r" (?:instead of|rather than|in place of|statt|anstatt|anstelle von|au lieu de|à la place de|en lugar de|en vez de)"
    r" \S{1,60}(?<![,.;:!?])"
    rf"|[，,]? ?而不是[^\s，。,.]{{1,30}}|[^\s，。、{CJK}]{{1,30}}(?:ではなく|の代わりに)",
    re.IGNORECASE,
)
_LETTER = rf"[^\W{CJK}]"
_NAME_WORD = rf"[A-ZÀ-ÖØ-Þ](?:(?:{_LETTER}|[.+#/-]){{0,40}}(?:{_LETTER}|[+#]))?"
_NAME = (
    rf"(?:{_NAME_WORD}(?: {_NAME_WORD}| \d[\d.]{{0,8}}(?<!\.)){{0,2}}"
    rf"|(?:{_LETTER}{{1,20}}[-./]){{1,4}}{_LETTER}{{1,20}})"
)
# A name is a value after a verb of using or, without one, after a preposition of place. Many things can be used at a
# time, so a use must name its purpose; a thing is kept in only one place.
_USED = re.compile(
    r"\b(?i:use|uses|using|prefer|prefers|choose|nehmen|nutzen|benutzen|verwenden|utilisons|utilise|utiliser|préfère"
    rf"|usamos|usar|usaremos|uso|prefiero) (?P<value>{_NAME})"
    rf"|用 ?(?P<zh>{_NAME})|(?P<jp>{_NAME}) ?を(?:使|採用|利用)"
)
_KEPT = re.compile(
    r"\b(?i:in|on|at|deploy to|deploys to|publish to|im|auf|bei|dans|sur|chez|en)"
    rf" (?:(?i:the|der|die|das|le|la|el) )?(?P<value>{_NAME})"
    rf"|在 ?(?P<zh>{_NAME})|(?P<jp>{_NAME}) ?に(?:保存|置|入れ)"
)
# An amount has a unit or follows a word such as "is"; any other number can be the name of one of many ("test 3").
_AMOUNT = re.compile(
    rf"(?<!{_LETTER})(?<![.,:/-])(?P<sign>[$€£]?)\d[\d.,:]{{0,11}}(?<![.,:]) ?"
    rf"(?P<unit>(?:{_TIMES}|{_SIZES}|{_COUNTED})(?!{_LETTER}))"
    r"|(?:\b(?:is|are|to|of|ist|auf|beträgt|est|sont|es|son)\b|=|是|为|は) ?(?P<sum>[$€£]?\d[\d.,:]{0,11}(?<![.,:]))"
    rf"(?= (?:for|in|on|at|per|für|pour|para|en)\b|[.!,;。！，で]|$)",
    re.IGNORECASE,
)
_KINDS = {"time": re.compile(_TIMES, re.IGNORECASE), "size": re.compile(_SIZES, re.IGNORECASE)}
_DAY_NAME = re.compile(_DAY, re.IGNORECASE)
# Verbs of lasting states and settings, not of single events: "takes 30 seconds", not "took 30 seconds".
_LASTS = re.compile(
    r"\b(?:is|are|stays?|keeps?|lasts?|expires?|lives?|holds?|takes?|costs?|has|allows?|waits?|retry|retries|runs?|limit"
    r"|must|should|stores?|set|raise|lower|increase|decrease|reduce|bump|cap|change|bleib(?:t|en)|ist|sind|dauer(?:t|n)"
    r"|beträgt|kostet|gil?t|gelten|hält|halten|behalten|est|sont|restent?|durent?|dure|coûte|garde|gardons|expirent?"
    r"|es|son|duran?|cuesta|quedan?|guardamos|expiran?)\b"
    r"|=|保留|保存|保持|是|为|最多|は",
    re.IGNORECASE,
)
# One of several, each with an amount of its own.
_ONE_OF_MANY = re.compile(
    r"^(?:an?|one|another|some|(?:noch )?eine?|une?|una|otra|otro)\b|^(?:一个|另一)", re.IGNORECASE
)
# "Move X to B" and "back to B for X", done or decided: no word before or after postpones it.
_END_OF_MOVE = (
    rf"(?: (?i:from \S{{1,40}}|instead|please|today|yesterday|last (?:week|month|year|{_DAY})))?[ .!。了]{{0,3}}$"
)
_MOVED = re.compile(
    r"^(?i:move|moved|switch|switched|migrate|migrated|migrieren|verschieben|passons|migrons|déplaçons|on va migrer"
    r"|pasamos|migramos|movemos|vamos a (?:pasar|migrar|mover)) (?P<thing>[^,.;:!?()]{2,40}?)"
    rf" (?i:(?:over |back )?to|nach|auf|vers|sur|à|a) (?P<value>{_NAME}){_END_OF_MOVE}"
    rf"|^(?i:lass uns) (?P<de_thing>[^,.;:!?()]{{2,40}}?) (?i:nach|auf|zu) (?P<de>{_NAME})"
    rf" (?i:migrieren|umstellen|umziehen|verschieben){_END_OF_MOVE}"
    r"|^(?i:(?:(?:go|went|move|moved|switch|switched|migrate|migrated) )?back to|(?:move|moved|switch|switched) to)"
    rf" (?P<to>{_NAME}) (?i:for) (?P<for_thing>[^,.;:!?()]{{2,40}}?){_END_OF_MOVE}"
    r"|^把?(?P<zh_thing>[\u4e00-\u9fff]{2,8}?)(?:都|就)?(?:迁移到|迁到|移到|换成|改成|改到|搬到)"
    rf" ?(?P<zh>{_NAME}){_END_OF_MOVE}"
    rf"|^(?P<jp_thing>[^、。，\s]{{2,12}}?)を ?(?P<jp>{_NAME}) ?(?:に|へ)(?:移|変更|切り替)"
)


def _all_terms(words: str) -> frozenset[str]:
    """Return the words of a text together with their stems."""
    return frozenset(term for word in words.split() for term in (word, *terms(word)))


# Verbs of being somewhere and of using, and small words: a sentence without them and its value names its subject.
_IS_AT = _all_terms(
    "keep kept store stay live run host put hold held save sit is are work deploy publish"
    " speichern liegen liegt läuft laufen ist sind wohne arbeite gardons est sont restent habite travaille"
    " guardamos está están vivo trabajo 在 住 保 置 入"
)
_USE = _all_terms(
    "use nehmen nutzen benutzen verwenden utilisons utilise utiliser usamos uso usar usaremos 用 使 採 利 存 做"
)
_SMALL = _all_terms(
    "was for in on at the our my i we wir für die der das unsere unser nous pour les le la nos dans sur para las los el"
    " en nuestras nuestros 我 们 里 に は を い ま す し て"
)
_ARTICLES = frozenset("the a an der die das den dem le la les el los las".split())
_WORD = re.compile(rf"[{CJK}]|(?:[^\W{CJK}]|[.,:/+#-](?=\w)|[$€£%=])+")
# Maximum characters of a sentence that is compared word by word; a longer text is rarely repeated with one change.
_LONGEST_SENTENCE = 300


@dataclass(frozen=True, slots=True)
class ValueSlot:
    """A value in its sentence: its kind, and the stems of the words before and after it."""

    value: str
    kind: str
    before: tuple[str, ...]
    behind: tuple[str, ...]

    @property
    def things(self) -> frozenset[str]:
        """The stems of the subject of the sentence."""
        return frozenset((*self.before, *self.behind)) - _IS_AT - _USE - _SMALL


@dataclass(frozen=True, slots=True)
class Move:
    """A move: the terms of the thing, the place that it is moved to, and the kind of that place."""

    thing: frozenset[str]
    value: str
    kind: str


@dataclass(frozen=True, slots=True)
class Value:
    """A named value: the terms of its subject, the preposition before it, and its own terms."""

    subject: frozenset[str]
    where: str
    named: frozenset[str]


@dataclass(frozen=True, slots=True)
class Assertion:
    """An assertion. `name` identifies it when it is replaced: the id of a row, or the content of a fact.

    `old` contains the terms of the value that it gives up, `purpose` and `place` those of its scope. `corrects`: it is
    a correction; `change`: it is marked as a change. `value` is the value in "X is value"; `named` is the one name, and
    `amounts` are the amounts, that a later sentence can replace with another.
    """

    name: str
    fingerprint: Fingerprint
    is_cjk: bool
    old: frozenset[str]
    purpose: frozenset[str]
    place: frozenset[str]
    corrects: bool
    change: bool
    value: Value | None
    named: ValueSlot | None
    amounts: tuple[ValueSlot, ...]
    move: Move | None


def read_assertion(name: str, content: str) -> Assertion:
    """Return the assertion in the content of a row or fact."""
    words = _OPENER.sub("", without_label(content).split(labels.IN_ANSWER, 1)[0])
    lasting = _WHEN.sub("", words)
    sentence = _sentence(words)
    corrects = content.startswith(labels.CORRECTION)
    return Assertion(
        name=name,
        fingerprint=fingerprint(words),
        is_cjk=bool(_CJK.search(words)),
        old=_old_value(words),
        purpose=_after(_PURPOSE, lasting),
        place=_after(_PLACE, lasting),
        corrects=corrects,
        change=corrects or bool(_CHANGE.search(words)),
        value=_value_of(words),
        named=_named(_WHEN.sub("", sentence)),
        amounts=tuple(_amounts(sentence)),
        move=_move(sentence),
    )


def _sentence(words: str) -> str:
    """Return a sentence without its lead, its words of change and the old value; empty for a long text."""
    if len(words) > _LONGEST_SENTENCE:
        return ""
    bare = _GIVEN_UP.sub("", _CHANGE.sub(" ", words)).strip()
    return _LEAD.sub("", bare)


def _old_value(text: str) -> frozenset[str]:
    """Return the terms of the value that a text says is given up."""
    found = _OLD_VALUE.search(text)
    if not found:
        return frozenset()
    named = next(part for part in found.groups() if part)
    # In Japanese the value comes before its mark, and its purpose before the value.
    parts = _END_OF_VALUE.split(named)
    return frozenset(terms(parts[-1] if found["jp"] else parts[0]))


def _after(pattern: re.Pattern[str], text: str) -> frozenset[str]:
    """Return the terms of the scopes that a pattern finds in a text."""
    found = (next(part for part in match.groups() if part) for match in pattern.finditer(text))
    return frozenset(term for words in found for term in terms(_END_OF_SCOPE.split(words, 1)[0]))


def _value_of(text: str) -> Value | None:
    """Return the value in a text such as "X is value", or None."""
    found = _VALUE_OF.search(text)
    if not found:
        return None
    subject = found["subject"] or found["zh"] or found["jp"]
    said = found["value"] or found["zh_value"] or found["jp_value"]
    value = _VALUE.match(said)
    in_a_word = bool(_SLOT.search(subject)) and len(said.split()) <= _MOST_WORDS
    if _is_loose(text) or not (value or in_a_word):
        return None
    where = ((value and value["where"]) or "").strip().casefold()
    found_value = Value(frozenset(terms(subject)), where, frozenset(terms(said)))
    return found_value if found_value.subject and found_value.named else None


def _is_loose(text: str) -> bool:
    """Whether the subject of a text is one of which many exist at a time."""
    found = _VALUE_OF.search(text)
    return bool(found and found["subject"] and _LOOSE.search(found["subject"]))


def _named(sentence: str) -> ValueSlot | None:
    """Return the one name in a sentence about the use or the place of something; None if there are several."""
    used = list(_USED.finditer(sentence))
    found = used or list(_KEPT.finditer(sentence))
    if len(found) != 1 or negates(fingerprint(sentence)):
        return None
    group = found[0].lastgroup or ""
    slot = _slot(sentence, found[0].span(group), _kind_of_name(found[0][group]))
    return slot if (slot.things if used else _says_where(slot)) else None


def _says_where(slot: ValueSlot) -> bool:
    """Whether a sentence says where something is; a place at its beginning is only the scope of the rest."""
    opens = len(slot.before) <= 1
    return not opens and bool(_IS_AT & {*slot.before, *slot.behind})


def _kind_of_name(name: str) -> str:
    return "day" if _DAY_NAME.fullmatch(name) else "name"


def _amounts(sentence: str) -> Iterator[ValueSlot]:
    """Yield the amounts in a sentence, if it describes a lasting state of one thing."""
    if not _LASTS.search(sentence) or _ONE_OF_MANY.search(sentence) or _is_loose(sentence):
        return
    for found in _AMOUNT.finditer(sentence):
        kind = "" if found["sum"] else found["sign"] + _kind_of_unit(found["unit"])
        yield _slot(sentence, found.span("sum" if found["sum"] else 0), kind)


def _kind_of_unit(unit: str) -> str:
    kinds = (kind for kind, units in _KINDS.items() if units.fullmatch(unit))
    return next(kinds, _stem(unit))


def _move(sentence: str) -> Move | None:
    found = _MOVED.search(sentence)
    if found is None:
        return None
    value = found["value"] or found["de"] or found["to"] or found["zh"] or found["jp"]
    thing = found["thing"] or found["de_thing"] or found["for_thing"] or found["zh_thing"] or found["jp_thing"]
    return Move(frozenset(_stems(thing)) - _SMALL, value.casefold(), _kind_of_name(value))


def _slot(sentence: str, span: tuple[int, int], kind: str) -> ValueSlot:
    start, end = span
    return ValueSlot(sentence[start:end].casefold(), kind, _stems(sentence[:start]), _stems(sentence[end:]))


def _stems(text: str) -> tuple[str, ...]:
    words = (word.casefold() for word in _WORD.findall(text))
    return tuple(_stem(word) for word in words if word not in _ARTICLES)


def _stem(word: str) -> str:
    return next(iter(terms(word)), word)
