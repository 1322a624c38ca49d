"""Words that negate a statement or turn it into its opposite, in the languages of the cases."""

import re
from collections.abc import Sequence, Set
from functools import cache, lru_cache
from typing import cast

from esker.server.core.words import lists
from evals.case_files import LANGUAGES, Language
from evals.scoring.text import by_language, normalised, of_words, stems, words_of


def _denied(language: Language) -> re.Pattern[str]:
    """Return a pattern for the denials of a language; a negation inside one of its exceptions is not a denial."""
    exceptions = lists.by_language("negation_exceptions").get(language, ())
    negations = [_unless(word, exceptions) for word in lists.words("negations", language)]
    # Phrases come first: they may begin with a negation.
    return of_words([*lists.words("scores.denied", language), lists.any_of(negations)], language)


def _unless(word: str, exceptions: Sequence[str]) -> str:
    """Return a pattern for a word that is not inside one of the exceptions that contain it."""
    parts = (exception.partition(word) for exception in exceptions if word in exception)
    guards = (f"(?!{f'(?<={before})' if before else ''}{word}{after})" for before, _, after in parts)
    return "".join((*guards, word))


def _plain_phrases(language: Language) -> list[tuple[re.Pattern[str], str]]:
    phrases = cast(Sequence[tuple[str, str]], lists.by_language("scores.plainly")[language])
    whole = "{}" if language in ("zh", "ja") else r"(?<!\w)(?:{})(?!\w)"
    return [(re.compile(whole.replace("{}", phrase).replace("ß", "ss")), plain) for phrase, plain in phrases]


_DENIED = {language: _denied(language) for language in LANGUAGES}
_DENIED_BEFORE = by_language("denied_before")
_MAY_DENY = by_language("may_deny")
# Phrases that contain words of denial without denying, and the plain wording of longer phrases.
_PLAINLY = {language: _plain_phrases(language) for language in LANGUAGES}
_OPPOSITES = lists.by_language("scores.opposites")
_WORD = re.compile(r"[^\W\d_]+")
_PREFIX = re.compile(r"^(?:un|in|im|ir|non|dis|des)(?=[^\W\d_]{4})")
_FLAG = re.compile(r"(?<!\w)--?no-[\w-]+|\bno-?reply\S*|\bnot?-[a-z]+(?:-[a-z]+)*(?=\.|/|_)", re.ASCII)


def denials(text: str, language: Language) -> int:
    """Return how often a text denies something. `no more than` and similar phrases are not denials."""
    return len(_DENIED[language].findall(_simplified(text, language)))


def denials_of(words: Set[str], text: str, language: Language, other: Set[str]) -> int:
    """Return how many denials of a text are about `words`.

    The denied words follow the denial: if these are `other` words alone, or the denial is about something else
    (`without ever resetting it`), it is not counted. Those of a passive (`resetting it is forbidden`) precede it. In
    Japanese and Chinese they may precede any denial, so all are counted.
    """
    plain = _simplified(text, language)
    passive = [*_DENIED_BEFORE[language].finditer(plain)]
    count = 0
    for match in _DENIED[language].finditer(plain):
        after = words_of(plain[match.end() :], language)
        elsewhere = after and not after & words and (after & other or match.group() in ("without", "ohne", "sin"))
        precedes = (
            any(each.end() == match.end() for each in passive) and words_of(plain[: match.start()], language) & words
        )
        count += language in ("zh", "ja") or bool(precedes) or not elsewhere
    return count


def denied_in(text: str, language: Language) -> frozenset[str]:
    """Return the words after the denials of a text, or all of its words if there are none."""
    plain = _simplified(text, language)
    found = [*_DENIED[language].finditer(plain)]
    after = words_of(_DENIED[language].sub(" ", plain[found[0].end() :]), language) if found else frozenset[str]()
    return after or words_of(without_denials(text, language), language)


def without_denials(text: str, language: Language) -> str:
    """Return a text without its words of denial."""
    return _DENIED[language].sub(" ", _simplified(text, language)).strip()


def possible_denials(text: str, language: Language) -> frozenset[str]:
    """Return the words of a text that may be denials."""
    return frozenset(_MAY_DENY[language].findall(_simplified(text, language)))


@lru_cache(maxsize=65_536)
def _simplified(text: str, language: Language) -> str:
    simplified = _FLAG.sub(" ", normalised(text))
    for phrase, plain in _PLAINLY[language]:
        simplified = phrase.sub(plain, simplified)
    return simplified


def opposite(first: str, second: str, language: Language) -> str | None:
    """Return the word of the second text that is the opposite of one of the first: `disabled` for `enabled`."""
    one, other = _searchable(first, language), _searchable(second, language)
    for left, right in _pairs(language):
        for word, contrary in ((left, right), (right, left)):
            has, lacks = _occurring(one, word, contrary), _occurring(other, word, contrary)
            if has == (True, False) and lacks == (False, True):
                return contrary
    return _prefixed(one, other) or _prefixed(other, one)


def _prefixed(one: frozenset[str] | str, other: frozenset[str] | str) -> str | None:
    """Return the word of the second text that is one of the first with a negating prefix (`unnecessary`)."""
    if isinstance(one, str) or isinstance(other, str):
        return None
    denied = ((word, _PREFIX.sub("", word)) for word in other - one)
    return next((word for word, rest in denied if rest != word and rest in one and rest not in other), None)


def _occurring(plain: frozenset[str] | str, word: str, contrary: str) -> tuple[bool, bool]:
    """Return which of two words occur; one that is a part of the other (可能, 不可能) is not counted within it."""
    if not isinstance(plain, str):
        return word in plain, contrary in plain
    longer, shorter = (word, contrary) if len(word) > len(contrary) else (contrary, word)
    found = {longer: longer in plain, shorter: shorter in plain.replace(longer, " ")}
    return found[word], found[contrary]


@cache
def _pairs(language: Language) -> tuple[tuple[str, str], ...]:
    pairs = (normalised(pair).partition("/") for pair in _OPPOSITES[language])
    return tuple((_stem(left, language), _stem(right, language)) for left, _, right in pairs)


def _searchable(text: str, language: Language) -> frozenset[str] | str:
    """Return a set of stems, or the text itself for scripts without spaces; both can be searched for words."""
    plain = without_denials(text, language)
    if language in ("zh", "ja"):
        return plain
    return frozenset(_stem(word, language) for word in _WORD.findall(plain))


@lru_cache(maxsize=65_536)
def _stem(word: str, language: Language) -> str:
    """Return the stem of a word, small words included."""
    return word if language in ("zh", "ja") else next(iter(stems(word, language)), word)
