"""Keyword terms of rows and of queries.

Words are stemmed by the rules of their text's language; identifiers (`auth.ts:45`, `ECONNRESET`, `gen-itgc`, `v0.8.6`)
stay whole and are also split into their parts, even without a space between them and other scripts; Chinese, Japanese
and Korean text becomes pairs of neighbouring characters, so that any phrase of two characters or more is found.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import NamedTuple

import Stemmer

from esker.server.core.text.korean import asked_word
from esker.server.core.text.languages import (
    ENGLISH,
    OTHER_SCRIPTS,
    STEMMERS,
    STOP_WORDS,
    language_of,
    languages_of,
    without_accents,
)
from esker.server.core.words.lists import by_language
from esker.server.core.words.scripts import CJK

MAX_TERM = 64
"""Maximum characters of a term; longer ones are truncated."""

_CHUNK = re.compile(
    rf"(?P<cjk>[{CJK}]+)"
    r"|(?P<identifier>[A-Za-z0-9_]+(?:[-._:/\\@#+][A-Za-z0-9_]+)+)"
    rf"|(?P<word>[^\W{CJK}]+)"
)
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_COMPOUND = re.compile(r"[A-Za-z]+(?:[-/][A-Za-z]+)+")
_AMOUNT = re.compile(r"[0-9]+[A-Za-z]{1,3}")
_SEPARATORS = re.compile(r"[-._:/\\@#+]+")


def terms(text: str, language: str = ENGLISH) -> list[str]:
    """Return the terms of `text` in order, repeats included, stemmed by the rules of `language`."""
    found: list[str] = []
    # No chunk contains a space, so what is between two of them has its terms by itself.
    for piece in unicodedata.normalize("NFKC", text).split():
        is_short = len(piece) <= MAX_TERM and piece.isascii()
        found.extend((_known_piece_terms if is_short else _piece_terms)(piece, language))
    return found


def index_terms(text: str) -> list[str]:
    """Return the terms that a text is indexed by, stemmed in its own language, or in English if that is unknown."""
    return terms(text, language_of(text) or ENGLISH)


def asked_terms(query: str) -> list[tuple[str, ...]]:
    """Return the words of a query in order, each once and with all terms that it can have in the index.

    A query is often too short to show its language; then its words are stemmed by the rules of all possible ones.
    Numbers and parts of one or two letters in an identifier are left out: they occur in many other identifiers.
    """
    known = languages_of(query)
    languages = tuple(dict.fromkeys((*known, ENGLISH))) if known else tuple(STOP_WORDS)
    small = STOP_WORDS[languages[0] if known else ENGLISH]
    words: dict[tuple[str, ...], None] = {}
    for chunk in _asked_chunks(query):
        is_name = _is_name(chunk)
        for forms in zip(*(_chunk_terms(chunk, each) for each in languages), strict=True):
            if forms[0] and forms[0] not in small and not (is_name and _says_little(forms[0])):
                words[tuple(dict.fromkeys(form[:MAX_TERM] for form in forms))] = None
    return list(words)


class Word(NamedTuple):
    """A word of a text that is not a stop word: its spelling, its position and its terms.

    `is_name`: it is an identifier. In Chinese, Japanese and Korean a word is a few characters.
    """

    spelled: str
    start: int
    terms: tuple[str, ...]
    is_name: bool


# Characters of a `Word` in Chinese, Japanese and Korean.
_CJK_WORD = 4


def telling_words(text: str) -> list[Word]:
    """Return the words of a text in order, with the terms of `index_terms`, without stop words and repeats."""
    plain = unicodedata.normalize("NFKC", text)
    language = language_of(text) or ENGLISH
    found = {word.terms: word for word in reversed(list(_spelled(plain, language)))}
    return sorted(found.values(), key=lambda word: word.start)


def _spelled(plain: str, language: str) -> Iterator[Word]:
    small = STOP_WORDS[language]
    for chunk in _CHUNK.finditer(plain):
        if chunk["cjk"]:
            for start in range(chunk.start(), chunk.end() - 1, _CJK_WORD):
                piece = plain[start : min(start + _CJK_WORD, chunk.end())]
                if len(piece) > 1:
                    yield Word(piece, start, tuple(piece[i : i + 2] for i in range(len(piece) - 1)), False)
            continue
        first = _chunk_terms(chunk, language)[0][:MAX_TERM]
        if first and first not in small:
            yield Word(chunk[0], chunk.start(), (first,), _is_name(chunk))


def _says_little(part: str) -> bool:
    return part.isdecimal() or len(part) <= 2


def _asked_chunks(query: str) -> list[re.Match[str]]:
    """Return the chunks of a query; those in Korean without endings and small words, unless all are small."""
    chunks = list(_chunks(query))
    stems = [(stem, chunk) for chunk in chunks if (stem := asked_word(chunk[0])) is not None]
    return [_CHUNK.fullmatch(stem) or chunk for stem, chunk in stems] or chunks


def asked_names(query: str) -> list[str]:
    """Return the identifiers in a query, whole, as terms."""
    return list(dict.fromkeys(chunk[0].casefold()[:MAX_TERM] for chunk in _chunks(query) if _is_name(chunk)))


def asks_of_names_alone(query: str) -> bool:
    """Whether a query consists of identifiers and stop words, with at least one identifier."""
    chunks = list(_chunks(query))
    small = STOP_WORDS[ENGLISH]
    return any(map(_is_name, chunks)) and all(_is_name(chunk) or chunk[0].casefold() in small for chunk in chunks)


def _is_name(chunk: re.Match[str]) -> bool:
    """Whether a chunk is an identifier: `T-16`, `auth.ts:45`, `v0.8.6`, `e2e`, `max_connections`.

    Words joined by hyphens or slashes alone (`well-known`, `and/or`) and amounts (`5pm`, `2nd`) are not.
    """
    text = chunk[0]
    if chunk["cjk"] or not any(map(str.isalpha, text)) or _AMOUNT.fullmatch(text):
        return False
    return any(map(str.isdecimal, text)) or "_" in text or (bool(chunk["identifier"]) and not _COMPOUND.fullmatch(text))


def _chunks(text: str) -> Iterator[re.Match[str]]:
    return _CHUNK.finditer(unicodedata.normalize("NFKC", text))


def _piece_terms(piece: str, language: str) -> tuple[str, ...]:
    small = STOP_WORDS[language]
    found = (term for chunk in _CHUNK.finditer(piece) for term in _chunk_terms(chunk, language))
    return tuple(term[:MAX_TERM] for term in found if term and term not in small)


_known_piece_terms = lru_cache(30_000)(_piece_terms)


def _chunk_terms(chunk: re.Match[str], language: str) -> list[str]:
    if cjk := chunk["cjk"]:
        return [cjk[i : i + 2] for i in range(len(cjk) - 1)] if len(cjk) > 1 else [cjk]
    if word := chunk["word"]:
        return list(_word_terms(word, language))
    return list(_identifier_terms(chunk["identifier"], language))


def _identifier_terms(identifier: str, language: str) -> Iterator[str]:
    """Yield the whole identifier, the file name in it, both without the text after a colon, and the parts."""
    whole = identifier.casefold()
    file = re.split(r"[/\\]", whole)[-1]
    wholes = dict.fromkeys([whole, file, whole.partition(":")[0], file.partition(":")[0]])
    yield from wholes
    for part in _SEPARATORS.split(identifier):
        if part.casefold() not in wholes:
            yield from _word_terms(part, language)


def _word_terms(word: str, language: str) -> tuple[str, ...]:
    return (_known_word_terms if len(word) <= MAX_TERM else _made_word_terms)(word, language)


def _made_word_terms(word: str, language: str) -> tuple[str, ...]:
    pieces = [piece.casefold() for piece in _CAMEL.findall(word)] if word.isascii() else []
    parts = (_stem(piece, language) for piece in pieces if len(piece) > 1) if len(pieces) > 1 else ()
    return (_stem(word.casefold(), language), *parts)


_known_word_terms = lru_cache(30_000)(_made_word_terms)


def _stem(word: str, language: str) -> str:
    """Return the stem of a word without its accents; a word with digits stays as it is."""
    if not word.isalpha():
        return word
    if language in OTHER_SCRIPTS and word.isascii():
        language = ENGLISH  # the name has the same stem in texts of both: "Jenkins"
    bare = without_accents(word)
    if bare in STOP_WORDS[language]:
        return bare
    # The rules of other languages need the accents, so they are removed afterwards.
    return _stemmer(language)(bare) if language == ENGLISH else without_accents(_stemmer(language)(word))


@cache
def _stemmer(language: str) -> Callable[[str], str]:
    stem: Callable[[str], str] = Stemmer.Stemmer(language).stemWord  # pyright: ignore - the library has no types
    return stem  # pyright: ignore[reportUnknownVariableType]


def says_something(text: str) -> bool:
    """Whether a text contains a letter or a digit."""
    return any(character.isalnum() for character in text)


# Stop words, and words of questions that name no subject.
_ASKING = frozenset(
    term
    for language, words in by_language("text.asking").items()
    for word in words
    for term in terms(word, STEMMERS[language])
).union(*STOP_WORDS.values())


def asks_of_something(query: str) -> bool:
    """Whether a query names a subject."""
    return not all(_ASKING.intersection(forms) for forms in asked_terms(query))
