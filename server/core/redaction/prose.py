"""Passwords, tokens and keys in sentences of many languages: "das Passwort für den Server lautet …"."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from esker.server.core.redaction.assigned import CONDITIONS, read_value
from esker.server.core.redaction.names import Strength, word_set, word_table
from esker.server.core.redaction.patterns import Pattern
from esker.server.core.redaction.scan import Scan, places
from esker.server.core.redaction.spans import Span
from esker.server.core.redaction.values import SHORTEST, Form, is_last_word, is_secret, is_uuid, looks_random
from esker.server.core.words.lists import any_of

# Characters between a name and the verb: "the password for the server in the hall is".
_LONGEST_GAP = 60
_NO_GAP = Pattern(r"(?i:\b(?:id|ids|uuid)\b)|\.(?!\w)|[\n;!?\"'(){}<>|。，,]")
_ENDS_GAP = frozenset("\n;!?\"'(){}<>|。，,")
_IN_WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_OPENED = Pattern(r"[¡¿]?[\"'`“„«「『‘]?\s?[¡¿]?")
_ENDS_SENTENCE = Pattern(r"[.!]?[\"'`)]?\s*(?:\n|\Z)")
_PAIR = Pattern(
    r"(?i)[a-z]{2,30}(?:[ -/][a-z]{2,10})?[\"']?\s{0,4}(?:[:=]|\bis\b|\bare\b)\s{0,4}[\"'`(]?[\w.@+-]{1,60}\s{0,4}"
    r"[/:|,]\s{0,4}(?P<value>[^\s\"'`,;]{6,200})"
)
_TWO_ARGUMENTS = Pattern(
    r"(?i)[a-z_]{4,20}\s?=?\s?\("
    r"\s{0,9}[\"'`][^\"'`\n]{0,80}[\"'`]\s{0,9},\s{0,9}[\"'`](?P<value>[^\"'`\n]{6,200})[\"'`]"
)
_WITH_TWO_ARGUMENTS = frozenset(
    (
        "credential",
        "credentials",
        "login",
        "log",
        "auth",
        "basicauth",
        "httpbasicauth",
        "httpdigestauth",
        "authenticate",
        "sign",
        "signin",
        "connect",
        "networkcredential",
        "usernamepasswordcredential",
        "passwordauthentication",
        "plainauth",
    )
)
_NEARBY = Pattern(r"(?:[ \t]{1,3}[^\s.,;:!?()A-Za-z0-9]{1,20}){0,2}[ \t]{1,3}(?P<value>[A-Za-z0-9!#$%&*+=?@_-]{6,64})")
# "uses … as its password"; it begins with a space so that a long text is not tried at each character.
_REVERSED = Pattern(
    r"\s(?P<value>[^\s\"'`,;:]{6,64})\s{1,3}(?:as|is)\s{1,3}(?:(?:its|the|a|my|your|his|her|their|our)\s{1,3})?"
    r"(?:\w{1,20}\s{1,3})?(?:password|passphrase|passcode)\b"
)
_REVERSED_NOUNS = ("password", "passphrase", "passcode")
# Characters from the verb to the noun, and from the value to it.
_LONGEST_VERB, _LONGEST_REVERSED = 40, 120
_PHRASE = Pattern(r"[\"']?[^\n:=]{0,30}[:=]\s{0,9}[\"'`]?(?P<value>(?:[a-z]{3,10}[ ,]{1,3}){11,24}[a-z]{3,10})\b")


class _Name(NamedTuple):
    """The name of a secret in small letters, and its strength in each of the languages that have it."""

    text: str
    meanings: Sequence[tuple[str, Strength]]


@cache
def _names() -> tuple[_Name, ...]:
    tables = (("prose.names", Strength.PASSWORD), ("prose.others", Strength.TOKEN))
    found: dict[str, set[tuple[str, Strength]]] = {}
    for table, strength in tables:
        for language, names in word_table(table).items():
            for name in names:
                found.setdefault(name.lower(), set()).add((language, strength))
    return tuple(_Name(name, sorted(meanings)) for name, meanings in sorted(found.items()))


@cache
def _separator(language: str) -> re.Pattern[str]:
    verbs = any_of(word_table("prose.verbs").get(language, ["="]))
    return re.compile(
        rf"(?i)[*_`]{{0,3}}[:：=][*_`]{{0,3}}\s{{0,4}}|(?<![a-z]){verbs}(?:[:：]?\s{{1,4}}|(?<![a-z]))"
        r"|[-–—]\s{1,4}|(?<=\s)(?=[\"'])|(?=[“«「])"
    )


def spoken(scan: Scan) -> Iterator[Span]:
    """Yield the passwords and keys that sentences tell."""
    text = scan.text
    for name in _present(scan):
        for place in places(scan.lowered, name.text):
            end = place + len(name.text)
            if not (place and text[place - 1] in _IN_WORD) and text[end : end + 1] not in _IN_WORD:
                yield from filter(None, (_behind(text, place, end, *meaning) for meaning in name.meanings))
    yield from _pairs(scan)


def _present(scan: Scan) -> Iterator[_Name]:
    """Yield the names of which a text has the first word or, if it is not in Latin letters, the first letter."""
    by_word, by_letter = _index()
    for word in by_word.keys() & scan.words:
        yield from by_word[word]
    if not scan.text.isascii():
        for letter in by_letter.keys() & set(scan.lowered):
            yield from by_letter[letter]


@cache
def _index() -> tuple[dict[str, list[_Name]], dict[str, list[_Name]]]:
    by_word: dict[str, list[_Name]] = {}
    by_letter: dict[str, list[_Name]] = {}
    for name in _names():
        if name.text.isascii():
            by_word.setdefault(re.split(r"[ '-]", name.text)[0], []).append(name)
        else:
            by_letter.setdefault(name.text[0], []).append(name)
    return by_word, by_letter


def _behind(text: str, start: int, end: int, language: str, strength: Strength) -> Span | None:
    name_is_latin = strength is Strength.TOKEN or text[start:end].isascii()
    look = _separator(language)
    # A sign that ends the search stands mostly right behind the name.
    ends = name_is_latin and text[end : end + 1] in _ENDS_GAP
    found = look.match(text, end, end + _LONGEST_GAP) if ends else look.search(text, end, end + _LONGEST_GAP)
    if not found and not name_is_latin:
        return _nearby(text, end)
    if not found or text.startswith(CONDITIONS, end) or _NO_GAP.search(text, end, found.start()):
        return None
    opened = _OPENED.match(text, found.end())
    value = read_value(text, opened.end() if opened else found.end())
    if value is None or value.form is Form.QUOTED or value.code:
        return None
    word = text[value.start : value.end].rstrip("!”»」")
    return Span(value.start, value.start + len(word)) if _told(text, value.end, word, strength, language) else None


def _nearby(text: str, end: int) -> Span | None:
    """Return a random word soon behind a name that is not in Latin letters, so that it stands out."""
    found = _NEARBY.match(text, end)
    if found and looks_random(found["value"], SHORTEST):
        return Span(found.start("value"), found.end("value"))
    return None


def _told(text: str, end: int, word: str, strength: Strength, language: str) -> bool:
    if strength is Strength.TOKEN:
        return (looks_random(word, 10) or is_uuid(word)) and is_secret(word, strength, Form.PROSE)
    if is_secret(word, strength, Form.PROSE):
        return True
    # The ends of words that describe are those of English.
    return language == "en" and bool(_ENDS_SENTENCE.match(text, end)) and is_last_word(word)


def _pairs(scan: Scan) -> Iterator[Span]:
    pairs = scan.matches(_PAIR, word_set("prose.pairs", "words"))
    for found in _reversed(scan):
        if looks_random(found["value"], 6) and is_secret(found["value"], Strength.PASSWORD, Form.PROSE):
            yield Span(found.start("value"), found.end("value"))
    for found in (*pairs, *scan.matches(_TWO_ARGUMENTS, _WITH_TWO_ARGUMENTS)):
        word = found["value"].rstrip(".,;)")
        if looks_random(word, 6) and is_secret(word, Strength.PASSWORD, Form.PROSE):
            yield Span(found.start("value"), found.start("value") + len(word))
    for first_word, phrase in _phrases():
        if first_word and first_word not in scan.words:
            continue
        for place in places(scan.lowered, phrase):
            found = _PHRASE.match(scan.text, place + len(phrase))
            if found:
                yield Span(found.start("value"), found.end("value"), "seed-phrase")


def _reversed(scan: Scan) -> Iterator[re.Match[str]]:
    """Yield what is said to be a password before this word; nothing is tried where no such verb stands before it."""
    for noun in _REVERSED_NOUNS if "password" in scan.words else ():
        for place in places(scan.text, noun):
            verbs = scan.text[max(0, place - _LONGEST_VERB) : place]
            if "as" in verbs or "is" in verbs:
                yield from _REVERSED.finditer(scan.text, max(0, place - _LONGEST_REVERSED), place + len(noun) + 1)


@cache
def _phrases() -> tuple[tuple[str, str], ...]:
    """Return pairs of the first word of a phrase, empty if the phrase is not in ASCII, and the phrase."""
    phrases = [phrase.lower() for phrases in word_table("prose.phrases").values() for phrase in phrases]
    return tuple((phrase.partition(" ")[0] if phrase.isascii() else "", phrase) for phrase in phrases)
