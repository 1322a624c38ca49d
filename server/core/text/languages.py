"""Detects the language of a text by its stop words, so that its words are stemmed by the right rules."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping

from esker.server.core.words import lists

ENGLISH = "english"

STEMMERS = {language: str(name) for language, name in lists.values("text.stemmer").items()}
"""The names of the stemmer's rules by language code."""
STOP_WORDS: Mapping[str, frozenset[str]] = {
    STEMMERS[language]: frozenset(words) for language, words in lists.by_language("text.stop_words").items()
}
"""Words without a subject of their own, by stemmer; leaving them out halves the index.

They are written without accents. When a list changes, stored rows keep the terms that they were indexed with.
"""
_LANGUAGES_OF_WORD: dict[str, list[str]] = {}
for _language, _small in STOP_WORDS.items():
    for _small_word in _small:
        _LANGUAGES_OF_WORD.setdefault(_small_word, []).append(_language)
_WORD = re.compile(r"[^\W\d_]+")
_BETWEEN_WORDS = {code: " " for code in range(128) if not chr(code).isalpha()}
# Characters that are read; more do not change the result.
_MOST_CHARACTERS = 2_000
# Minimum number of different stop words that show a language.
_FEWEST = 2


def without_accents(word: str) -> str:
    """Return a word without the marks above and below its letters."""
    if word.isascii():
        return word
    return "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))


def _words_in(text: str) -> Iterable[str]:
    """Return the words of a text in small letters and without accents; a text in ASCII takes a third of the time."""
    folded = text.casefold()
    return folded.translate(_BETWEEN_WORDS).split() if folded.isascii() else map(without_accents, _WORD.findall(folded))


def language_of(text: str) -> str | None:
    """Return the stemmer of the language that a text has most stop words of, or None; of several, the first."""
    return next(iter(languages_of(text)), None)


def languages_of(text: str) -> list[str]:
    """Return the stemmers of all languages that a text has most stop words of.

    A single word, however frequent, is not enough: it may be a name or belong to several languages.
    """
    words = Counter(word for word in _words_in(text[:_MOST_CHARACTERS]) if word in _LANGUAGES_OF_WORD)
    found: dict[str, list[int]] = {language: [] for language in STOP_WORDS}
    for word, occurrences in words.items():
        for language in _LANGUAGES_OF_WORD[word]:
            found[language].append(occurrences)
    counts = {language: sum(each) for language, each in found.items() if len(each) >= _FEWEST}
    most = max(counts.values(), default=0)
    return [language for language, count in counts.items() if count == most]
