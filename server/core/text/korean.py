"""Korean words of a question without the particles and endings behind them.

A row is indexed by pairs of characters, and a word has another ending in the question than in the row. The pairs with
an ending then match rows that have nothing but the ending in common with the question.
"""

import re

from esker.server.core.words.lists import by_language

_HANGUL = re.compile("[\uac00-\ud7af]+")
_ENDINGS = sorted(by_language("questions.endings")["ko"], key=len, reverse=True)
_SMALL_WORDS = frozenset(by_language("questions.small_words")["ko"])


def asked_word(word: str) -> str | None:
    """Return a word of a question without its endings; None if it names no subject. Other scripts stay as they are.

    At least two characters are kept, since a single one is in no pair.
    """
    if not _HANGUL.fullmatch(word):
        return word
    while word not in _SMALL_WORDS:
        ending = next((each for each in _ENDINGS if word.endswith(each) and len(word) - len(each) > 1), None)
        if ending is None:
            return word
        word = word.removesuffix(ending)
    return None
