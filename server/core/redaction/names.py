"""Tells from a name whether the value behind it is a secret."""

import re
from collections.abc import Mapping
from enum import IntEnum
from functools import cache, lru_cache
from typing import cast

from esker.server.core.words.lists import language_file

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")


_KNOWN_NAMES = 1024


class Strength(IntEnum):
    """How surely a name announces a secret, and so how little its value has to look like one."""

    NOTHING = 0
    KEY = 1
    TOKEN = 2
    PASSWORD = 3


@cache
def word_table(path: str) -> Mapping[str, list[str]]:
    """Return a table of the words that announce secrets, such as `prose.names`."""
    table = language_file("secrets")
    for part in path.split("."):
        table = cast(Mapping[str, object], table[part])
    return cast(Mapping[str, list[str]], table)


@cache
def word_set(table: str, name: str) -> frozenset[str]:
    """Return a list of the words that announce secrets as a set."""
    return frozenset(word_table(table)[name])


@lru_cache(maxsize=_KNOWN_NAMES)
def strength_of(name: str) -> Strength:
    """Return how surely an identifier, a key or a header announces a secret."""
    return _strength(name) if len(name) <= 120 else Strength.NOTHING


def words_of(name: str) -> list[str]:
    """Return the words of an identifier in small letters: `dbPassword2` has two words and a number."""
    return [word.lower() for word in _WORDS.findall(name)]


@cache
def _forms() -> frozenset[str]:
    return word_set("identifiers", "forms")


def _strength(name: str) -> Strength:
    words = words_of(name)
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in _forms()):
        words.pop()
    return _by_last_word(words) if words else Strength.NOTHING


def _by_last_word(words: list[str]) -> Strength:
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in word_set("identifiers", "passwords"):
        return Strength.PASSWORD
    if last in ("key", "keys") and before in word_set("identifiers", "harmless_keys"):
        return Strength.NOTHING
    if last in ("key", "keys") and before in (
        "api",
        "secret",
        "private",
        "access",
        "encryption",
        "signing",
        "master",
        "auth",
    ):
        return Strength.TOKEN
    if last in word_set("identifiers", "tokens"):
        return Strength.TOKEN
    if last in word_set("identifiers", "keys"):
        return Strength.KEY
    return _by_ending(last)


def _by_ending(word: str) -> Strength:
    for ending in word_table("identifiers")["endings"]:
        if word.endswith(ending):
            return Strength.PASSWORD if ending.startswith("pass") else Strength.TOKEN
    return Strength.NOTHING
