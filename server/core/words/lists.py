"""Lists of words by language, and regular expressions made of them."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import cast

from esker.server.core.words.scripts import CJK

LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "sv", "ru", "pl", "zh", "ja", "ko")
"""ISO 639-1 codes, each with a file. When several languages fit a text equally well, the first of them is used."""

Entries = Mapping[str, tuple[str, ...]]
"""The entries of one list by language."""

_IN_CJK = re.compile(f"[{CJK}]")
# These characters make an entry a regular expression. A full stop alone does not: abbreviations end with one.
_SYNTAX = re.compile(r"[\\^$|?*+()\[\]{}]")


@cache
def language_file(language: str) -> Mapping[str, object]:
    """Return the content of a language's file."""
    text = files(__package__).joinpath(f"{language}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _found(path: str, language: str) -> object | None:
    place: object = language_file(language)
    for key in path.split("."):
        if not isinstance(place, Mapping) or key not in place:
            return None
        place = cast(Mapping[str, object], place)[key]
    return place


def values(path: str) -> Mapping[str, object]:
    """Return what stands at a path (`text.stemmer`) of each file that has it, by language. KeyError: none has it."""
    found = {language: _found(path, language) for language in LANGUAGES}
    present = {language: value for language, value in found.items() if value is not None}
    if not present:
        raise KeyError(path)
    return present


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
    """Return a regular expression for any of some entries, the longest first. An apostrophe may be curly in a text."""
    ordered = sorted(set(entries), key=lambda entry: (-len(entry), entry))
    return f"(?:{'|'.join(entry if is_pattern(entry) else _escaped(entry) for entry in ordered)})"


def _escaped(word: str) -> str:
    return re.escape(word).replace("'", "['’]").replace(r"\ ", " ")


def cue(*entries: str) -> re.Pattern[str]:
    """Return a pattern that finds any entry, in any case: plain words as whole words where the script has spaces."""
    plain = [entry for entry in entries if not is_pattern(entry)]
    in_cjk = [word for word in plain if _IN_CJK.search(word)]
    spaced = [word for word in plain if not _IN_CJK.search(word)]
    parts = [
        *([rf"(?<!\w){any_of(spaced)}(?!\w)"] if spaced else []),
        *([any_of(in_cjk)] if in_cjk else []),
        *(f"(?:{entry})" for entry in entries if is_pattern(entry)),
    ]
    return re.compile("|".join(parts), re.IGNORECASE)
