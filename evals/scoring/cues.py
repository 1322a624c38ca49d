"""Cues that qualify a statement: it is deferred, undecided, limited, done, past, or only an opinion.

Except for negations, the scores have lists of their own (`scores` in `server/core/words`), separate from those of the
server: a measure must not share the errors of the measured system.
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
_DENIAL_REACH = 24
"""Maximum distance in characters between a denial and the word after it that it negates, within a clause."""
_CLAUSE_END = re.compile(r"[,.;:。]")


def is_called_untrue(text: str, language: Language) -> bool:
    """Whether a text calls its own statement untrue."""
    return bool(_UNTRUE[language].search(normalised(text)))


def has_happened(fact: str, said: str, language: Language) -> bool:
    """Whether a statement reports a deferred fact as past, without a word for the future."""
    if not _has(_DEFERRED, fact, language) or _has(_HAPPENED, fact, language) or not _has(_HAPPENED, said, language):
        return False
    return not any(_has(cues, said, language) for cues in (_TO_COME, _UNDECIDED, _PUT_OFF))


def keeps_reservation(fact: str, said: str, language: Language) -> bool:
    """Whether a statement is deferred, undecided or limited as the fact is.

    An undecided fact must stay undecided; "later" is not enough. A fact without such words always passes.
    A present tense with the day of the fact (`it gets a restart on 2 June`) counts as deferred.
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
    """Whether a text leaves something undecided."""
    return _has(_UNDECIDED, text, language)


def is_done(text: str, language: Language) -> bool:
    """Whether a text reports something as done; `not done`, `has been postponed`, `wurde verschoben` do not."""
    return any(_says_done(clause, language) for clause in _CLAUSE_END.split(normalised(text)))


def _says_done(clause: str, language: Language) -> bool:
    if _PUT_OFF[language].search(clause) and not _AS_AGREED.search(clause):
        return False
    found = (match.start() for match in _DONE[language].finditer(clause))
    return any(not denials(clause[max(0, start - _DENIAL_REACH) : start], language) for start in found)


def is_past(text: str, language: Language) -> bool:
    """Whether a text reports something as past."""
    return _has(_PAST, text, language) or "→" in text or "->" in text


def tells_of_change(text: str, language: Language) -> bool:
    """Whether a text reports that one value replaced another."""
    return is_past(text, language) or _has(_CHANGED, text, language)


@lru_cache(maxsize=16_384)
def is_old_value(words: str, text: str, language: Language) -> bool:
    """Whether a text names a value as the former one: `from 64 to 256`, `instead of 64`."""
    value, said = normalised(words), normalised(text)
    if value not in said:  # compiling a pattern for each value takes longer than this
        return False
    whole = rf"(?<![\w.,]){re.escape(value)}(?!\w|[.,][0-9])"
    return bool(re.search(_OLD_VALUE[language].replace("<value>", whole), said))


def withdraws(text: str, language: Language) -> bool:
    """Whether a text reports that a ruling was withdrawn, softened or reopened."""
    return _has(_WITHDRAWN, text, language)


def reported(text: str, language: Language) -> tuple[str, str] | None:
    """Return the speaker and the reported statement of a text that reports an opinion; else None."""
    said = normalised(text)
    found = _SAID_TO_BE[language].search(said)
    return (said[: found.start()], said[found.end() :]) if found else None


def unsettled_cues(text: str, language: Language) -> frozenset[str]:
    """Return the words of a text that mark it as a question, an offer, a claim or a rejection."""
    said = normalised(text)
    found = {match.group() for match in _UNSETTLED[language].finditer(said)}
    return frozenset(found | {"?"}) if "?" in said else frozenset(found)
