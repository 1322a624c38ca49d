"""Which earlier assertion a new one replaces, told by its words alone.

These signs are trusted: the old value is named ("X instead of Y", "from Y to X", "no longer Y"); the same thing gets
another value ("the deploy target is …") or amount ("for 48 hours"); it is moved ("move sessions to X"); a sentence is
said again with another name and marked as a change ("now", "again", a correction); or the same is liked and disliked,
allowed and forbidden, done and not done. A correction replaces what was said last about its subject with another value.
Two texts that say what they hold for ("for sessions", "in Python"), and say something else, are about different things
whatever else they share. A row that is replaced by mistake is lost to whoever asks; one that is not replaced is merely
older. So in doubt nothing is.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from server.core import labels
from server.core.contradiction import contradicts, denied, negates
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
_CJK_RANGE = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_CJK = re.compile(rf"[{_CJK_RANGE}]")
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

# How a correction opens: it is no part of what is corrected.
_OPENER = re.compile(
    r"^(?:(?:(?:no|nope|wait|hold on|sorry|oops|hmm|oh|ok|okay|well|correction|nein|doch|moment|falsch|non|pardon"
    r"|perdón)(?:[,.:;!—–]| [—–-])"
    r"|(?:actually|scratch that|scrap that|on second thought|eigentlich|en fait|en realidad)\b)"
    r"[ ,.:;!—–-]{0,4}){1,4}"
    r"|^(?:不对|不是|其实|错了|更正|いや|違います|違う|訂正|実は)[，、。：,.: ]{0,3}",
    re.IGNORECASE,
)
# Who says what is so, and that it was decided: the same is said without.
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
# How long or until when something holds tells it from nothing else.
_WHEN = re.compile(
    r"\b(?:for|until|till|during|before|after|für|bis|vor|nach|pour|pendant|avant|après|para|por|durante|hasta"
    r"|antes de|después de) (?:(?:about|at least|at most|up to|another|the|next|this|el|la|los|las|le|les|die) ){0,2}"
    rf"(?:(?:{_NUMBER_WORD})[ -]?(?:{_TIMES})|now|good|ever|moment|time being|today|tomorrow|tonight|week|month|year"
    rf"|jetzt|morgen|heute|l['’]instant|moment|demain|ahora|mañana|{_DAY}|\d{{1,2}}(?::\d\d)?(?: ?[ap]m)?)"
    r"(?![^\s,.;:!?)])",
    re.IGNORECASE,
)
# What is so from now on was not so before.
_CHANGE = re.compile(
    r"[ ,]{0,2}\b(?:from now on|as of (?:now|today)|now|again|ab jetzt|ab sofort|jetzt|nun|wieder|désormais|dorénavant"
    r"|maintenant|de nouveau|a partir de ahora|ahora|de nuevo|otra vez)\b[ ,]{0,2}"
    r"|从现在(?:起|开始)[，,]?|现在|又|今は、?|今後は、?|これからは、?",
    re.IGNORECASE,
)
# Together with its new value a text often names the one that it gives up.
_GIVEN_UP = re.compile(
    r" (?:instead of|rather than|in place of|statt|anstatt|anstelle von|au lieu de|à la place de|en lugar de|en vez de)"
    r" \S{1,60}(?<![,.;:!?])"
    rf"|[，,]? ?而不是[^\s，。,.]{{1,30}}|[^\s，。、{_CJK_RANGE}]{{1,30}}(?:ではなく|の代わりに)",
    re.IGNORECASE,
)
_LETTER = rf"[^\W{_CJK_RANGE}]"
_NAME_WORD = rf"[A-ZÀ-ÖØ-Þ](?:(?:{_LETTER}|[.+#/-]){{0,40}}(?:{_LETTER}|[+#]))?"
_NAME = (
    rf"(?:{_NAME_WORD}(?: {_NAME_WORD}| \d[\d.]{{0,8}}(?<!\.)){{0,2}}"
    rf"|(?:{_LETTER}{{1,20}}[-./]){{1,4}}{_LETTER}{{1,20}})"
)
# A name is a value behind a verb of using, and where there is none, behind a preposition of place. Many things are used
# at a time, so that it must be said for what; but who lives in one place lives in no other.
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
# An amount has a unit, or is what something is; any other number can be the name of one of many ("test 3").
_AMOUNT = re.compile(
    rf"(?<!{_LETTER})(?<![.,:/-])(?P<sign>[$€£]?)\d[\d.,:]{{0,11}}(?<![.,:]) ?"
    rf"(?P<unit>(?:{_TIMES}|{_SIZES}|{_COUNTED})(?!{_LETTER}))"
    r"|(?:\b(?:is|are|to|of|ist|auf|beträgt|est|sont|es|son)\b|=|是|为|は) ?(?P<sum>[$€£]?\d[\d.,:]{0,11}(?<![.,:]))"
    rf"(?= (?:for|in|on|at|per|für|pour|para|en)\b|[.!,;。！，で]|$)",
    re.IGNORECASE,
)
_KINDS = {"time": re.compile(_TIMES, re.IGNORECASE), "size": re.compile(_SIZES, re.IGNORECASE)}
_DAY_NAME = re.compile(_DAY, re.IGNORECASE)
# What lasts or is set, as opposed to what happened twice: "takes 30 seconds", not "took 30 seconds".
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
# "Move X to B" and "back to B for X", as done or decided: nothing stands before it or behind it that puts it off.
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
    """Return words and their stems."""
    return frozenset(term for word in words.split() for term in (word, *terms(word)))


# Verbs that say where something is or works, and with the small words around them all that is not the thing itself.
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
_WORD = re.compile(rf"[{_CJK_RANGE}]|(?:[^\W{_CJK_RANGE}]|[.,:/+#-](?=\w)|[$€£%=])+")
# Longer texts are no single sentence that is said again with another word.
_LONGEST_SENTENCE = 300


@dataclass(frozen=True, slots=True)
class _Slot:
    """A value in its sentence: its kind, and the stems of the words before and behind it."""

    value: str
    kind: str
    before: tuple[str, ...]
    behind: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Move:
    """Where a thing is moved to: its terms, the place and the kind of it."""

    thing: frozenset[str]
    value: str
    kind: str


@dataclass(frozen=True, slots=True)
class _Said:
    """An assertion, under the name by which it can be replaced.

    `words` are its own, without what they answer and how a correction opens. `change` tells whether it is marked as
    one, `named` is the name and `amounts` are the amounts that could be another in the same sentence.
    """

    name: str
    words: str
    mark: Fingerprint
    old: frozenset[str]
    purpose: frozenset[str]
    place: frozenset[str]
    corrects: bool
    change: bool
    named: _Slot | None
    amounts: tuple[_Slot, ...]
    move: _Move | None


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
    words = _OPENER.sub("", without_label(content).split(labels.IN_ANSWER, 1)[0])
    lasting = _WHEN.sub("", words)
    sentence = _sentence(words)
    corrects = content.startswith(labels.CORRECTION)
    return _Said(
        name=name,
        words=words,
        mark=fingerprint(words),
        old=_old_value(words),
        purpose=_after(_PURPOSE, lasting),
        place=_after(_PLACE, lasting),
        corrects=corrects,
        change=corrects or bool(_CHANGE.search(words)),
        named=_named(_WHEN.sub("", sentence)),
        amounts=tuple(_amounts(sentence)),
        move=_move(sentence),
    )


def _sentence(words: str) -> str:
    """Return a sentence without who says it, since when it is so and what is given up, and nothing for a long text."""
    if len(words) > _LONGEST_SENTENCE:
        return ""
    bare = _GIVEN_UP.sub("", _CHANGE.sub(" ", words)).strip()
    return _LEAD.sub("", bare)


def _replaced(said: _Said, earlier: Sequence[_Said]) -> str | None:
    """Return the name of the latest earlier assertion that one replaces."""
    return next((other.name for other in reversed(earlier) if _replaces(said, other)), None)


def _replaces(said: _Said, other: _Said) -> bool:
    if same_fact(said.mark, other.mark) or _apart(said.purpose, other.purpose):
        return False
    if _corrects(said, other) or _another_value(said, other):
        return True
    if _another_name(said, other) or _another_amount(said, other) or _moves(said, other):
        return True
    elsewhere = _apart(said.place, other.place - said.old)
    return not elsewhere and (_names_old(said, other) or _opposes(said, other))


def _opposes(said: _Said, other: _Said) -> bool:
    """Tell whether both judge the same in opposite ways; "X instead of Y" denies neither X nor what it is for."""
    return not other.old and contradicts(said.mark, other.mark)


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
    if not said.corrects:
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
    is_at = now[1]
    if not is_at and _apart(said.place, other.place):
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
    if _is_loose(text) or not (value or in_a_word):
        return None
    where = ((value and value["where"]) or "").strip().casefold()
    named = frozenset(terms(subject)), where, frozenset(terms(said))
    return named if named[0] and named[2] else None


def _is_loose(text: str) -> bool:
    """Tell whether a text says what something is of which there are many at a time."""
    found = _VALUE_OF.search(text)
    return bool(found and found["subject"] and _LOOSE.search(found["subject"]))


def _another_name(said: _Said, other: _Said) -> bool:
    """Tell whether a sentence is said again with another name, and marked as a change."""
    now, then = said.named, other.named
    return said.change and now is not None and then is not None and _is_other_value(now, then)


def _another_amount(said: _Said, other: _Said) -> bool:
    """Tell whether a sentence about what lasts is said again with one other amount."""
    return any(_is_other_value(now, then) for now in said.amounts for then in other.amounts)


def _moves(said: _Said, other: _Said) -> bool:
    """Tell whether what the other says to be in one place is moved to another, and nothing else is said of it."""
    move, then = said.move, other.named
    if move is None or then is None or move.thing != _things(then):
        return False
    return move.kind == then.kind and move.value != then.value


def _is_other_value(now: _Slot, then: _Slot) -> bool:
    same_frame = (now.kind, now.before, now.behind) == (then.kind, then.before, then.behind)
    return same_frame and now.value != then.value


def _named(sentence: str) -> _Slot | None:
    """Return the one name in a sentence that says what is used for something, or where something is."""
    used = list(_USED.finditer(sentence))
    found = used or list(_KEPT.finditer(sentence))
    if len(found) != 1 or negates(fingerprint(sentence)):
        return None
    group = found[0].lastgroup or ""
    slot = _slot(sentence, found[0].span(group), _kind_of_name(found[0][group]))
    return slot if (_things(slot) if used else _says_where(slot)) else None


def _says_where(slot: _Slot) -> bool:
    """Tell whether a sentence says where something is; a place that it opens with is where the rest of it holds."""
    opens = len(slot.before) <= 1
    return not opens and bool(_IS_AT & {*slot.before, *slot.behind})


def _kind_of_name(name: str) -> str:
    return "day" if _DAY_NAME.fullmatch(name) else "name"


def _things(slot: _Slot) -> frozenset[str]:
    """Return what a sentence is about, apart from its value."""
    return frozenset((*slot.before, *slot.behind)) - _IS_AT - _USE - _SMALL


def _amounts(sentence: str) -> Iterator[_Slot]:
    """Yield the amounts in a sentence about the one thing that has them as long as nobody changes them."""
    if not _LASTS.search(sentence) or _ONE_OF_MANY.search(sentence) or _is_loose(sentence):
        return
    for found in _AMOUNT.finditer(sentence):
        kind = "" if found["sum"] else found["sign"] + _kind_of_unit(found["unit"])
        yield _slot(sentence, found.span("sum" if found["sum"] else 0), kind)


def _kind_of_unit(unit: str) -> str:
    kinds = (kind for kind, units in _KINDS.items() if units.fullmatch(unit))
    return next(kinds, _stem(unit))


def _move(sentence: str) -> _Move | None:
    found = _MOVED.search(sentence)
    if found is None:
        return None
    value = found["value"] or found["de"] or found["to"] or found["zh"] or found["jp"]
    thing = found["thing"] or found["de_thing"] or found["for_thing"] or found["zh_thing"] or found["jp_thing"]
    return _Move(frozenset(_stems(thing)) - _SMALL, value.casefold(), _kind_of_name(value))


def _slot(sentence: str, span: tuple[int, int], kind: str) -> _Slot:
    start, end = span
    return _Slot(sentence[start:end].casefold(), kind, _stems(sentence[:start]), _stems(sentence[end:]))


def _stems(text: str) -> tuple[str, ...]:
    words = (word.casefold() for word in _WORD.findall(text))
    return tuple(_stem(word) for word in words if word not in _ARTICLES)


def _stem(word: str) -> str:
    return next(iter(terms(word)), word)
