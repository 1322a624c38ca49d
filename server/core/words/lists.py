"""Lists of words by language, and regular expressions made of them."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import cast

from esker.server.core.words.scripts import CJK, TRADITIONAL

LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "sv", "ru", "pl", "zh", "ja", "ko", "ar")
"""ISO 639-1 codes, each with a file. When several languages fit a text equally well, the first of them is used."""

Entries = Mapping[str, tuple[str, ...]]
"""The entries of one list by language."""

_FOLDER = Path(__file__).parent
# A set of characters in an expression, and a character outside of one that can be written in several ways.
_VARYING = re.compile(rf"\[(?:\\.|[^\]\\])*\]|'|[{''.join(TRADITIONAL)}]")
# People leave these apostrophes out, and the result is not another word: "dont", "lets", "thats", "im", "ive".
_OFTEN_LEFT_OUT = re.compile(r"(?<=n)'(?=t(?!\w))|(?<=\blet)'(?=s)|(?<=\bthat)'(?=s)|(?<=\bi)'(?=m\b|ve\b)")
_IN_CJK = re.compile(f"[{CJK}]")
# These characters make an entry a regular expression. A full stop alone does not: abbreviations end with one.
_ORDINARY = re.compile(r"[^\W\d_]{3,}")
_SYNTAX = re.compile(r"[\\^$|?*+()\[\]{}]")


@cache
def language_file(language: str) -> Mapping[str, object]:
    """Return the content of a language's file."""
    text = _FOLDER.joinpath(f"{language}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _value_at(path: str, language: str) -> object | None:
    *sections, name = path.split(".")
    table = language_file(language)
    for section in sections:
        table = cast(Mapping[str, object], table.get(section, {}))
    return table.get(name)


def values(path: str) -> Mapping[str, object]:
    """Return the value at a path (`text.stemmer`) of each file that has it, by language. KeyError: no file has it."""
    found = {language: _value_at(path, language) for language in LANGUAGES}
    present = {language: value for language, value in found.items() if value is not None}
    if not present:
        raise KeyError(path)
    return present


@cache
def all_words() -> frozenset[str]:
    """Return every word that occurs in a list of any language: ordinary words, though by far not all of them."""
    found = (_FOLDER.joinpath(f"{name}.toml").read_text(encoding="utf-8") for name in LANGUAGES)
    return frozenset(word.casefold() for text in found for word in _ORDINARY.findall(text))


@cache
def by_language(path: str) -> Entries:
    """Return the entries of a list (`observer.decision`, `dates.units`) by language, those of all its keys together."""
    return {language: tuple(_entries(value)) for language, value in values(path).items()}


def _entries(value: object) -> Iterable[str]:
    if isinstance(value, Mapping):
        return chain.from_iterable(cast(Mapping[str, list[str]], value).values())
    return cast(list[str], value)


def words(path: str, *languages: str) -> tuple[str, ...]:
    """Return the entries of a list in all languages or in `languages`, each entry once."""
    entries = by_language(path)
    return tuple(dict.fromkeys(word for language in languages or entries for word in entries.get(language, ())))


def groups(path: str) -> list[list[str]]:
    """Return the groups of a list of groups (`facts.opposites`), those of all languages together."""
    return [group for value in values(path).values() for group in cast(list[list[str]], value)]


def keyed(path: str, *languages: str) -> dict[str, str]:
    """Return the key of each word of a list with keys: `day` for "Tage" in `dates.units`."""
    tables = cast(Mapping[str, Mapping[str, list[str]]], values(path))
    return {
        word: key
        for language in languages or tables
        if language in tables
        for key, some in tables[language].items()
        for word in some
    }


def is_pattern(entry: str) -> bool:
    """Whether an entry is a regular expression and not a plain word."""
    return bool(_SYNTAX.search(entry))


def any_of(entries: Iterable[str]) -> str:
    """Return a regular expression for any of some entries, the longest first."""
    ordered = sorted(set(entries), key=lambda entry: (-len(entry), entry))
    return f"(?:{'|'.join(entry if is_pattern(entry) else re.escape(entry) for entry in ordered)})"


def any_word_of(entries: Iterable[str]) -> str:
    """Return an expression like `any_of` that is faster with many entries: each letter is tried once at each place.

    The entries are tried in the order of their letters, so the longest need not be found first.
    """
    by_letter: dict[str, list[str]] = {}
    for entry in entries:
        # A letter that a quantifier follows cannot be separated from it.
        letter = entry[0] if entry[0].isalpha() and entry[1:2].isalpha() else ""
        by_letter.setdefault(letter, []).append(entry[len(letter) :])
    return f"(?:{'|'.join(letter + any_of(rest) for letter, rest in sorted(by_letter.items()))})"


def spaced(entries: Iterable[str]) -> list[str]:
    """Return the entries in scripts that put spaces between words."""
    return [entry for entry in entries if not _IN_CJK.search(entry)]


def unspaced(entries: Iterable[str]) -> list[str]:
    """Return the entries in Chinese, Japanese and Korean script."""
    return [entry for entry in entries if _IN_CJK.search(entry)]


def starting(entries: Sequence[str], end: str = "") -> str:
    """Return a regular expression for any of some entries that begins a word, where the script has spaces.

    `end` is appended to the entries in scripts with spaces.
    """
    with_spaces, without = spaced(entries), unspaced(entries)
    parts = [*([rf"\b{any_of(with_spaces)}{end}"] if with_spaces else []), *([any_of(without)] if without else [])]
    return f"(?:{'|'.join(parts)})"


def whole(entries: Sequence[str]) -> str:
    """Return a regular expression for any of some entries as a whole word, where the script has spaces."""
    return starting(entries, r"\b")


def _all_forms(part: re.Match[str]) -> str:
    """Return a set of characters, or a single one, with the other forms of its apostrophes and Han characters."""
    forms = "".join(f"{each}’" if each == "'" else each + TRADITIONAL.get(each, "") for each in part[0])
    return forms if len(part[0]) > 1 else f"[{forms}]"


class Cue:
    """A pattern that finds any entry, in any case: plain words as whole words, with any apostrophe.

    Chinese entries in simplified characters also find the traditional ones.

    It is compiled on first use: a server would start half a second later if all of them were compiled at once.
    """

    def __init__(self, *entries: str) -> None:
        self._entries = entries

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        plain = [entry for entry in self._entries if not is_pattern(entry)]
        patterns = [f"(?:{entry})" for entry in self._entries if is_pattern(entry)]
        joined = "|".join((*([whole(plain)] if plain else []), *patterns))
        joined = _OFTEN_LEFT_OUT.sub("['’]?", joined)
        return re.compile(_VARYING.sub(_all_forms, joined), re.IGNORECASE)

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match in a text."""
        return self._pattern.search(text)

    def match(self, text: str) -> re.Match[str] | None:
        """Return a match at the beginning of a text."""
        return self._pattern.match(text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """Return a match of a whole text."""
        return self._pattern.fullmatch(text)

    def sub(self, replacement: str, text: str) -> str:
        """Return a text with each match replaced."""
        return self._pattern.sub(replacement, text)
