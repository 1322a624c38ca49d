"""Keyword terms: what a text is found by, the same for rows and queries.

Words are stemmed; identifiers (`auth.ts:45`, `ECONNRESET`, `gen-itgc`, `v0.8.6`) stay whole and are also cut into
their parts, wherever they are glued to other script; Chinese, Japanese and Korean text becomes pairs of
neighbouring characters, so that any sub-phrase of two characters or more is found.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache

import Stemmer

MAX_TERM = 64
"""Characters of a term that are compared; what goes beyond is cut off."""

_stem_word: Callable[[str], str] = Stemmer.Stemmer("english").stemWord  # pyright: ignore
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_CHUNK = re.compile(
    rf"(?P<cjk>[{_CJK}]+)"
    r"|(?P<identifier>[A-Za-z0-9_]+(?:[-._:/\\@#+][A-Za-z0-9_]+)+)"
    rf"|(?P<word>[^\W{_CJK}]+)"
)
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SEPARATORS = re.compile(r"[-._:/\\@#+]+")
# Words that say nothing about what a text is about; leaving them out halves the index.
STOP_WORDS = frozenset(
    "a an and are as at be been but by can could did do does for from had has have he her his how i if in into is it"
    " its me my no not of on or our she should so than that the their them then there these they this to us was we"
    " were what when where which who why will with would you your".split()
)


def terms(text: str) -> list[str]:
    """Return the terms of `text` in order, repeats included."""
    normal = unicodedata.normalize("NFKC", text)
    found = (term for chunk in _CHUNK.finditer(normal) for term in _chunk_terms(chunk))
    return [term[:MAX_TERM] for term in found if term and term not in STOP_WORDS]


def _chunk_terms(chunk: re.Match[str]) -> Iterator[str]:
    if cjk := chunk["cjk"]:
        yield from (cjk[i : i + 2] for i in range(len(cjk) - 1)) if len(cjk) > 1 else (cjk,)
    elif word := chunk["word"]:
        yield from _word_terms(word)
    else:
        yield from _identifier_terms(chunk["identifier"])


def _identifier_terms(identifier: str) -> Iterator[str]:
    """Yield the whole, the file name in it, both without what stands behind a colon, and the parts."""
    whole = identifier.casefold()
    file = re.split(r"[/\\]", whole)[-1]
    wholes = dict.fromkeys([whole, file, whole.partition(":")[0], file.partition(":")[0]])
    yield from wholes
    for part in _SEPARATORS.split(identifier):
        if part.casefold() not in wholes:
            yield from _word_terms(part)


@lru_cache(20_000)
def _word_terms(word: str) -> tuple[str, ...]:
    pieces = [piece.casefold() for piece in _CAMEL.findall(word)] if word.isascii() else []
    parts = (_stem(piece) for piece in pieces if len(piece) > 1) if len(pieces) > 1 else ()
    return (_stem(word.casefold()), *parts)


def _stem(word: str) -> str:
    """Return the English stem of a word without its accents; a word with digits stays as it is."""
    if not word.isalpha():
        return word
    bare = "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))
    return bare if bare in STOP_WORDS else _stem_word(bare)


def says_something(text: str) -> bool:
    """Tell whether there is a letter or a digit in a text."""
    return any(character.isalnum() for character in text)
