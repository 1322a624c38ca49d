"""The language of a text, as far as its small words tell, so that its words are stemmed by the right rules."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping

from esker.server.core.words import lists

ENGLISH = "english"

STEMMERS = {language: str(name) for language, name in lists.values("text.stemmer").items()}
"""The names of the stemmer's rules by language code."""
STOP_WORDS: Mapping[str, frozenset[str]] = {
    STEMMERS[language]: frozenset(words) for language, words in lists.by_language("text.stop_words").items()
}
"""Words that say nothing about what a text is about, by stemmer: leaving them out halves the index.

They have no accents, as they are compared. Rows keep the terms that they were indexed with when these lists change.
"""
_WORD = re.compile(r"[^\W\d_]+")
# Characters that are looked at; more make no difference.
_MOST_CHARACTERS = 2_000
_FEWEST = 2


def without_accents(word: str) -> str:
    """Return a word without the marks above and below its letters."""
    if word.isascii():
        return word
    return "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))


def language_of(text: str) -> str | None:
    """Return the stemmer for most stop words of a text, or None if they do not show one; of several, the first."""
    return next(iter(languages_of(text)), None)


def languages_of(text: str) -> list[str]:
    """Return the language of most small words of a text, all of them where they are in several.

    One word, however frequent, shows nothing: it may be a name or belong to several languages.
    """
    words = Counter(without_accents(word) for word in _WORD.findall(text[:_MOST_CHARACTERS].casefold()))
    small = {language: words.keys() & known for language, known in STOP_WORDS.items()}
    counts = {
        language: sum(words[word] for word in there) for language, there in small.items() if len(there) >= _FEWEST
    }
    most = max(counts.values(), default=0)
    return [language for language, count in counts.items() if count == most]
