"""Identifiers: which words are paths, flags, versions or code, and in which other ways one is spelled."""

import re
from collections.abc import Iterator

from esker.server.core.facts.numerals import is_quantity
from esker.server.core.text.folding import LETTERS, NOT_GLUED
from esker.server.core.words.lists import any_of, words

# A German compound of a name and an ordinary word: `ECONNRESET-Fehler`.
COMPOUND = re.compile(r"(?<=[^\W_])-[A-ZÄÖÜ][a-zäöüß]+(?:-[A-ZÄÖÜ][a-zäöüß]+)*\Z")
_FLAG = re.compile(rf"--[A-Za-z]|-[A-Za-z]{NOT_GLUED}")
ROOTED = re.compile(rf"(?:~|\.{{1,2}})?[/\\][{LETTERS}.]|[A-Za-z]:[/\\]")
_TIED = re.compile(rf"[{LETTERS}](?:@|::|\\)[{LETTERS}]|@[A-Za-z]")
# A file and a line of it.
PLACE = re.compile(r"([^:]+):(\d+(?:[:-]\d+)*)")
_DOTTED = re.compile(rf"[{LETTERS}]\.[{LETTERS}]|(?<![{LETTERS}])\.[A-Za-z]")
_TAGGED = re.compile(r"v\d+", re.IGNORECASE)
_NUMBERED = re.compile(r"([a-z]+)(\d+(?:\.\d+)*)")
_INNER_CAPITAL = re.compile(r"[a-zß-öø-ÿ][A-ZÀ-ÖØ-Þ]|[A-Z]{2}[a-z]{3}")
_ABBREVIATIONS = frozenset(words("facts.abbreviations"))
# A prefix that does not make a number or a name another one: `mid-2025`, `pre-1.0`.
_LOOSE = re.compile(rf"{any_of(words('facts.loose_prefixes'))}-", re.IGNORECASE)
# Words inside an ordinary compound: `state-of-the-art`, `up-to-date`.
_LINKS = frozenset(words("facts.links"))


def is_name(word: str) -> bool:
    """Whether a word, without punctuation around it, is an identifier."""
    if _FLAG.match(word) or ROOTED.match(word) or _TIED.search(word):
        return True
    if place := PLACE.fullmatch(word):
        return is_name(place[1])
    if ":" in word or _LOOSE.match(word):
        return False
    return _is_path(word.split("/")) if "/" in word else _is_plain_name(word)


def _is_path(parts: list[str]) -> bool:
    """Whether parts are a path and not alternatives (`and/or`, `a.py/b.py`): some look like a file's, but not all."""
    dotted = [_is_dotted(part) for part in parts]
    if dotted[-1]:
        return not all(dotted)
    alike = [_is_dotted(part) or _is_kebab(part) or "_" in part or bool(_TAGGED.fullmatch(part)) for part in parts]
    return any(alike) and not all(alike)


def _is_plain_name(word: str) -> bool:
    return _is_dotted(word) or _is_kebab(word) or (word.replace("_", "a").isalnum() and is_code_word(word))


def _is_dotted(word: str) -> bool:
    if not _DOTTED.search(word) or is_quantity(word):
        return False
    parts = word.split(".")
    return word.casefold() not in _ABBREVIATIONS and not all(len(part) == 1 and part.isalpha() for part in parts)


def _is_kebab(word: str) -> bool:
    parts = word.split("-")
    if len(parts) < 2 or is_quantity(word) or not any(parts):
        return False
    if any(character.isdigit() for character in word):
        return True
    ordinary = not word.islower() or not word.isascii() or any(part in _LINKS for part in parts)
    return len(parts) > 2 and not ordinary


def is_code_word(word: str) -> bool:
    """Whether a word of letters, digits and underscores looks like code: `setModel`, `snake_case`, `ENOENT`."""
    if word.isalpha():
        return bool(_INNER_CAPITAL.search(word)) or (len(word) > 3 and word.isupper())
    if not any(character.isalpha() for character in word) or is_quantity(word):
        return False
    inner = word.strip("_")
    return not inner.isalpha() or (word[0] == "_" and word[-1] != "_")


def spellings(name: str) -> Iterator[str]:
    """Yield the spellings of a folded name."""
    yield name
    relative = re.sub(r"^(?:(?:~|\.{1,2})?[/\\])+", "", name)
    if relative != name and (name[0] != "/" or "/" in relative):
        yield relative
    if name.endswith("()"):
        yield name.removesuffix("()")
    if "://" in name:
        yield name.partition("://")[2]
    elif "-" in name and not name.startswith("-"):
        yield name.replace("-", " ")
    elif "\\" in name:
        yield name.replace("\\", "\\\\")
        yield name.replace("\\", "/")
    elif numbered := _NUMBERED.fullmatch(name):
        letters, number = numbered.groups()
        yield from (f"{letters} {number}", f"{letters}-{number}")
        if letters == "v":
            yield from (f"version {number}", *([number] if "." in number else []))
