"""The grammar by which an assertion is cut into segments, with the words of each language in `server/core/words`."""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from esker.server.core.text.languages import ENGLISH, STEMMERS, STOP_WORDS, without_accents
from esker.server.core.text.terms import terms
from esker.server.core.words.lists import any_of, by_language, keyed, starting, unspaced, whole
from esker.server.core.words.scripts import CJK

_OPENING = (
    "instead", "also", "now", "replaces", "becomes", "gone", "swaps", "inherits", "holds", "changes", "sets", "puts",
    "uses", "is", "from", "to", "by", "at", "for", "not", "breaks",
)  # fmt: skip
"""Kinds of segments whose content follows the word that opens them, by the names of their lists. The first one that
matches at a place wins, so turns of several words come before the prepositions that they begin with."""
_CLOSING = ("instead", "also", "gone", "changes", "puts", "uses", "is", "from", "to", "at", "object", "topic")
"""Kinds of segments whose content precedes their word, in languages with postpositions; the lists end in `_behind`."""
_CUES = (
    "small",
    "when",
    "unsure",
    "undecided",
    "others",
    "past",
    "corrects",
    "wrong",
    "because",
    "works",
    "one_of_many",
    "renames",
)
"""Lists of words that are looked for anywhere in a statement or clause."""
_UNSPACED = ("zh", "ja", "ko")
"""Languages whose terms are pairs of characters."""
_ORDINAL = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)\b", re.IGNORECASE)
_IN_CJK = re.compile(f"[{CJK}]")
_WORD = re.compile(r"[^\W\d_]+")
_KANA = re.compile(r"[\u3040-\u30ff]")
_HANGUL = re.compile(r"[\uac00-\ud7af]")
_CYRILLIC = re.compile(r"[А-Яа-яЁё]")


def _lists(name: str, language: str) -> tuple[str, ...]:
    return by_language(f"assertions.{name}").get(language, ())


class Grammar:
    """The patterns of one language."""

    def __init__(self, language: str) -> None:
        self.stemmer = STEMMERS.get(language, ENGLISH)
        self.postpositions = bool(_lists("object_behind", language))
        self.unspaced = language in _UNSPACED
        # Where a language has no word for it, a place is what replaces something: "заменили X на Y".
        self.by = ("by",) if self.postpositions or _lists("by", language) else ("at",)
        self.genitives = frozenset(_lists("of", language))
        # Words such as "para" before a new value, or a purpose.
        self.purposes = frozenset(_lists("to", language)) & frozenset(_lists("for", language))
        if self.postpositions:
            before = {kind: _lists(kind, language) for kind in ("also", "now", "not", "breaks")}
            behind = {kind: _lists(f"{kind}_behind", language) for kind in _CLOSING}
            found = {kind: (*before.get(kind, ()), *behind.get(kind, ())) for kind in {**before, **behind}}
        else:
            found = {kind: _lists(kind, language) for kind in _OPENING}
            months = any_of(keyed("dates.months", language))
            found["now"] = (*found["now"], *(f"{since} {months}" for since in _lists("since", language)))
        self.opener = _kinds_by_word(found)
        self.now = _pattern(found["now"])
        self.cue = {name: _pattern(_lists(name, language)) for name in _CUES}
        self.copula = _lists("dash", language)
        self.many = frozenset(self.terms(" ".join(_lists("many", language))))
        self.whole = frozenset(self.terms(" ".join(_lists("whole", language))))
        showing = keyed("assertions.attributes", language)
        self.attributes = [
            (key, _pattern([word for word in showing if showing[word] == key])) for key in sorted({*showing.values()})
        ]

    def terms(self, text: str) -> list[str]:
        """Return the terms of a text; an ordinal is its number."""
        return terms(_ORDINAL.sub(r"\1", text), self.stemmer)

    def telling(self, text: str) -> list[str]:
        """Return the terms of a text without times beside it, doubts and words that say nothing about a subject."""
        for name in ("when", "undecided", "unsure", "small"):
            text = self.cue[name].sub(" ", text)
        return self.terms(text)


def _pattern(entries: Sequence[str]) -> re.Pattern[str]:
    return re.compile(whole(entries) if entries else r"(?!)", re.IGNORECASE)


def _kinds_by_word(found: dict[str, tuple[str, ...]]) -> re.Pattern[str]:
    """Return a pattern of the words of all kinds in order, the longest of a kind first; its group names the kind."""
    entries = [
        (entry, kind) for kind, some in found.items() for entry in sorted(some, key=lambda one: (-len(one), one))
    ]
    parts = (f"(?P<{kind}__{place}>{starting([entry], _end(entry))})" for place, (entry, kind) in enumerate(entries))
    # Inside a word no entry has to be tried, except in scripts without spaces.
    begins = "" if any(unspaced([entry]) for entry, _ in entries) else r"\b"
    return re.compile(f"{begins}(?:{'|'.join(parts) or '(?!)'})", re.IGNORECASE)


def _end(entry: str) -> str:
    return r"\b" if entry[-1:].isalnum() or entry[-1:] in ")]?" else ""


_grammar = cache(Grammar)


def grammar_of(text: str) -> Grammar:
    """Return the grammar of the language whose small words a text has most of, or of that of its script."""
    return _grammar(_language_of(text))


@cache
def places_of_software(name: str) -> frozenset[str]:
    """Return the terms of a list of places where software runs: `environments`, or `live` among them."""
    named = by_language(f"assertions.{name}").items()
    return frozenset(term for language, some in named for term in _grammar(language).terms(" ".join(some)))


@cache
def _small_words() -> dict[str, frozenset[str]]:
    """Return the small words of each language with a grammar that puts spaces between words."""
    return {
        language: frozenset(map(without_accents, (*_plain_words(language), *STOP_WORDS[STEMMERS[language]])))
        for language in by_language("assertions.is")
        if language in STEMMERS
    }


def _plain_words(language: str) -> Iterator[str]:
    for kind in ("is", "uses", "changes", "from", "to", "at", "for", "now", "small"):
        yield from (entry.casefold() for entry in _lists(kind, language) if entry.isalpha())


def _language_of(text: str) -> str:
    if _HANGUL.search(text):
        return "ko"
    if _IN_CJK.search(text):
        return "ja" if _KANA.search(text) else "zh"
    if _CYRILLIC.search(text):
        return "ru"
    found = [without_accents(word) for word in _WORD.findall(text.casefold())]
    counts = {language: sum(word in small for word in found) for language, small in _small_words().items()}
    most = max(counts.values())
    likely = [language for language, count in counts.items() if count == most]
    if len(likely) == 1:
        return likely[0]
    return max(likely, key=lambda language: sum(len(one[0]) for one in _grammar(language).opener.finditer(text)))
