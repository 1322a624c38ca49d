"""Detects the language of a text by its stop words, so that its words are stemmed by the right rules."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from operator import itemgetter

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


def _script(letter: str) -> str:
    """Return the script of a letter: `LATIN`, `CYRILLIC`, `HIRAGANA`."""
    return unicodedata.name(letter, "").partition(" ")[0]


_LANGUAGES_OF_SCRIPT: dict[str, set[str]] = {}
for _language, _small in STOP_WORDS.items():
    for _small_word in _small:
        _LANGUAGES_OF_SCRIPT.setdefault(_script(_small_word[0]), set()).add(_language)
_ONE_LANGUAGE = {script: next(iter(found)) for script, found in _LANGUAGES_OF_SCRIPT.items() if len(found) == 1}
"""Scripts that show a language of the lists by themselves: Cyrillic."""
OTHER_SCRIPTS = frozenset(_ONE_LANGUAGE.values())
"""Languages of such scripts: a word in Latin letters in their texts is foreign."""
_BETWEEN_WORDS = {code: " " for code in range(128) if not chr(code).isalpha()}
# Characters that are read; more do not change the result.
_MOST_CHARACTERS = 2_000
# The last letter of the blocks of Latin letters that are used most; their names need not be looked up.
_LAST_LATIN = 0x24F
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

    A single word, however frequent, is not enough: it may be a name or belong to several languages. If there are no
    others, a script in which only one of these languages is written shows it: "Сборка идёт на Jenkins."
    """
    words = Counter(word for word in _words_in(text[:_MOST_CHARACTERS]) if word in _LANGUAGES_OF_WORD)
    found: dict[str, list[int]] = {language: [] for language in STOP_WORDS}
    for word, occurrences in words.items():
        for language in _LANGUAGES_OF_WORD[word]:
            found[language].append(occurrences)
    counts = {language: sum(each) for language, each in found.items() if len(each) >= _FEWEST}
    if not counts:
        return _languages_by_script(text[:_MOST_CHARACTERS])
    most = max(counts.values())
    return [language for language, count in counts.items() if count == most]


def _languages_by_script(text: str) -> list[str]:
    """Return the one language that is written in the script of most letters of a text, if there is one."""
    if text.isascii():
        return []
    letters = [letter for letter in text if letter.isalpha()]
    scripts = Counter(_script(letter) for letter in letters if ord(letter) > _LAST_LATIN)
    script, count = max(scripts.items(), key=itemgetter(1), default=("", 0))
    return [_ONE_LANGUAGE[script]] if script in _ONE_LANGUAGE and 2 * count > len(letters) else []
