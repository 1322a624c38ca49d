"""The words of a text that a question asks for, as recall by words compares them."""

import re
from collections.abc import Iterator

from esker.server.core.text.languages import ENGLISH, language_of
from esker.server.core.text.terms import MAX_TERM, asked_terms, terms
from esker.server.core.words.scripts import CJK

_WORD = re.compile(r"\w+(?:[-._:/\\@#+]+\w+)*")
# Chinese and Japanese have no spaces: a whole sentence would be marked for two of its characters.
_UNSPACED = re.compile(f"[{CJK}]")


def marked_words(text: str, question: str) -> Iterator[tuple[bool, str]]:
    """Yield the text in parts, each with whether it is a word of the question, maybe in another form."""
    asked = {term for word in asked_terms(question) for term in word}
    language = language_of(text) or ENGLISH
    end = 0
    for word in _WORD.finditer(text):
        if _is_asked(word.group(), asked, language):
            if end < word.start():
                yield False, text[end : word.start()]
            yield True, word.group()
            end = word.end()
    if end < len(text):
        yield False, text[end:]


def _is_asked(word: str, asked: set[str], language: str) -> bool:
    return len(word) <= MAX_TERM and not _UNSPACED.search(word) and not asked.isdisjoint(terms(word, language))
