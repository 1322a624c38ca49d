"""Cues that turn a statement: they put it off, leave it open, limit it, or call it done, past or somebody's opinion.

Except for negations, the scores have lists of their own (`scores` in `server/core/words`), apart from those that the
server uses: a measure must not share the mistakes of what it measures.
"""

import re
from functools import lru_cache

from esker.server.core.words import lists
from esker.server.core.words.lists import any_of, words
from evals.case_files import Language
from evals.scoring import dates
from evals.scoring.denials import denials
from evals.scoring.text import Patterns, by_language, normalised

_UNTRUE = by_language("untrue")
_DEFERRED = by_language("deferred")
_UNDECIDED = by_language("undecided")
_LIMITED = by_language("limited")
_DONE = by_language("done")
_PUT_OFF = by_language("put_off")
_AS_AGREED = re.compile(any_of(words("scores.as_agreed")))
_PAST = by_language("past")
_CHANGED = by_language("changed")
_OLD_VALUE = {language: "|".join(entries) for language, entries in lists.by_language("scores.old_value").items()}
_WITHDRAWN = by_language("withdrawn")
_SAID_TO_BE = by_language("said_to_be")
_UNSETTLED = by_language("unsettled")
_TO_COME = by_language("to_come")
_TIME = re.compile(
    rf"\b(?:q[1-4]|{any_of((*words('dates.weekdays', 'en'), *words('scores.seasons')))}"
    rf"|{any_of(words('scores.numbered'))} [0-9]+)\b|[0-9]{{1,2}}月"
)
_HAPPENED = by_language("happened")
_QUESTION = by_language("question")
_BEFORE = 24
"""How far before a word, in characters, a denial stands that is about it, if it is in the same clause."""
_CLAUSE_END = re.compile(r"[,.;:。]")


def is_called_untrue(text: str, language: Language) -> bool:
    """Tell whether a text says of what it states that it is not so."""
    return bool(_UNTRUE[language].search(normalised(text)))


def has_happened(fact: str, said: str, language: Language) -> bool:
    """Tell whether what is said tells as past, without a word for what is to come, what a fact puts off."""
    if not _has(_DEFERRED, fact, language) or _has(_HAPPENED, fact, language) or not _has(_HAPPENED, said, language):
        return False
    return not any(_has(cues, said, language) for cues in (_TO_COME, _UNDECIDED, _PUT_OFF))


def keeps_reservation(fact: str, said: str, language: Language) -> bool:
    """Tell whether what is said is put off, undecided or limited, as the fact is.

    What is undecided has to read so: that it comes later is not enough. A fact without any such words is not judged.
    The present of a day to come (`it gets a restart on 2 June`) puts off by the day that it has from the fact.
    """
    kinds = [cues for cues in (_DEFERRED, _LIMITED) if _has(cues, fact, language)]
    undecided = _has(_UNDECIDED, fact, language)
    if "?" in normalised(said) or not (kinds or undecided):
        return True
    if undecided and (not kinds or _is_question(fact, language)):
        return _has(_UNDECIDED, said, language)
    if _DEFERRED in kinds and not _has(_HAPPENED, said, language) and _times(fact) & _times(said):
        return True
    kinds += [_UNDECIDED] if undecided or _DEFERRED in kinds else []
    return any(_has(cues, said, language) for cues in kinds)


def _times(text: str) -> frozenset[str]:
    """Return the days, months, weekdays, seasons and quarters that a text names."""
    said = normalised(text)
    return frozenset(_TIME.findall(said)) | frozenset(f"{month}月" for month in dates.months(said))


def _is_question(text: str, language: Language) -> bool:
    return _has(_QUESTION, text, language)


def _has(cues: Patterns, text: str, language: Language) -> bool:
    return bool(cues[language].search(normalised(text)))


def is_undecided(text: str, language: Language) -> bool:
    """Tell whether a text leaves something undecided."""
    return _has(_UNDECIDED, text, language)


def is_done(text: str, language: Language) -> bool:
    """Tell whether a text says that something was done; `not done`, `has been postponed`, `wurde verschoben` do not."""
    return any(_says_done(clause, language) for clause in _CLAUSE_END.split(normalised(text)))


def _says_done(clause: str, language: Language) -> bool:
    if _PUT_OFF[language].search(clause) and not _AS_AGREED.search(clause):
        return False
    found = (match.start() for match in _DONE[language].finditer(clause))
    return any(not denials(clause[max(0, start - _BEFORE) : start], language) for start in found)


def is_past(text: str, language: Language) -> bool:
    """Tell whether a text says of something that it held before."""
    return _has(_PAST, text, language) or "→" in text or "->" in text


def tells_of_change(text: str, language: Language) -> bool:
    """Tell whether a text says that one thing took the place of another."""
    return is_past(text, language) or _has(_CHANGED, text, language)


@lru_cache(maxsize=16_384)
def is_old_value(words: str, text: str, language: Language) -> bool:
    """Tell whether a text names a value as the one before: `from 64 to 256`, `instead of 64`."""
    value = rf"(?<![\w.,]){re.escape(normalised(words))}(?!\w|[.,][0-9])"
    return bool(re.search(_OLD_VALUE[language].replace("<value>", value), normalised(text)))


def withdraws(text: str, language: Language) -> bool:
    """Tell whether a text says that a ruling was taken back, softened, or is talked about again."""
    return _has(_WITHDRAWN, text, language)


def reported(text: str, language: Language) -> tuple[str, str] | None:
    """Return who says something, and what, where a text reports what somebody says or thinks; else None."""
    said = normalised(text)
    found = _SAID_TO_BE[language].search(said)
    return (said[: found.start()], said[found.end() :]) if found else None


def unsettled_cues(text: str, language: Language) -> frozenset[str]:
    """Return the words of a text by which something was asked, offered, claimed by somebody, or turned down."""
    said = normalised(text)
    found = {match.group() for match in _UNSETTLED[language].finditer(said)}
    return frozenset(found | {"?"}) if "?" in said else frozenset(found)
