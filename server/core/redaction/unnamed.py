"""Random words that no name announces: `X_VALUE=…`, `Client("…")`, a word alone in a line.

Letters and digits in no order are a token more often than anything else. Identifiers, hashes and keys that anyone may
see look alike, so that their names spare them (`unnamed` in `server/core/words/secrets.toml`).
"""

import re
from collections.abc import Iterator
from functools import cache

from esker.server.core.redaction.formats import public_prefixes
from esker.server.core.redaction.names import Strength, strength_of, word_set, word_table, words_of
from esker.server.core.redaction.patterns import Pattern
from esker.server.core.redaction.randomness import is_hexadecimal, is_random, is_random_in_one_case
from esker.server.core.redaction.scan import Scan
from esker.server.core.redaction.spans import RANDOM, Span

_LEAST = 20
# A shorter word that nothing announces may be an identifier.
_LEAST_UNANNOUNCED = 23
# The last signs of a word pad base64, and end a sentence.
_VALUE = Pattern(
    r"(?:(?P<name>[\w$.#-]{1,60}+)[=:])?(?P<value>(?:[A-Za-z0-9_]{1,40}\.){0,3}+(?P<body>[A-Za-z0-9_-]{20,256}+)"
    r"(?P<padding>={0,2}))[.:!?]{0,2}\Z",
    re.ASCII,
)
_NAME = Pattern(
    r"(?:(?P<word>[A-Za-z]{2,20})[ -])?(?P<name>[\w$.#-]{1,60})[\]\"'`\\]{0,9}\s{0,9}"
    r"(?:=>|:=|[:=|])\s{0,9}[\\\"'`]{0,9}\Z",
    re.ASCII,
)
# A sign stands between a name and its value, with these characters around it.
_SIGNS = ("=", ":", "|", ">")
_BETWEEN = " \t\r\f\v\\\"'`"
_PREFIX = Pattern(r"([A-Za-z][A-Za-z0-9]{0,11})[_-]")
# Hexadecimal digits and UUIDs are keys where a client is made of them.
_HEXADECIMAL = Pattern(r"(?i)(?:[a-z]{1,4}-)?(?:[0-9a-f]{32,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\Z")
_CALL = Pattern(r"(?i)(?:client|connect|login|auth\w{0,20}|api(?:\.\w{1,20})?)\(\s{0,4}[\"'`]\Z")
# Characters before and behind a word in which its name, or words about it, are looked for.
_BEFORE, _NEAR = 90, 40
_WORD = Pattern(r"[^\W\d_]{2,30}")
# Hashes of 16, 20, 32 and 64 bytes in base64, with padding and without.
_PADDED_HASHES = frozenset((24, 28, 44, 88))
_BARE_HASHES = frozenset((22, 27, 43, 86))
# Lines of base64 before a word or behind it: it is a part of their data.
_LINE_BEFORE = Pattern(r"(?:[A-Za-z0-9+/=]{20,}[\"']?|-----)(?:\\r?)?[ \t,]{0,9}\r?\n[ \t]{0,40}b?[\"']?\Z")
_LINE_BEHIND = Pattern(r"=*[\"']?(?:\\r?)?[ \t,]{0,9}\r?\n[ \t]{0,40}b?[\"']?[A-Za-z0-9+/=]{16,}")
# Parts of a public key in JSON.
_OF_PUBLIC_KEY = frozenset(("n", "x", "y", "x5t", "x5t#S256"))


def unnamed(scan: Scan) -> Iterator[Span]:
    """Yield random words that have a name which does not spare them, or that stand alone."""
    for start, word in scan.long_words:
        found = _VALUE.match(word) if len(word) >= _LEAST else None
        if found and not _is_public(found["value"]) and _is_secret(scan.text, start, found):
            yield Span(start + found.start("value"), start + found.end("value"), RANDOM)


def _is_public(value: str) -> bool:
    """Whether a word is an identifier by its prefix, or a name that a compiler made."""
    prefix = _PREFIX.match(value)
    return (prefix is not None and prefix[1].lower() in public_prefixes()) or value.startswith("_Z")


def _is_secret(text: str, start: int, found: re.Match[str]) -> bool:
    mixed = is_random(found["body"]) and not is_hexadecimal(found["body"])
    if not mixed and not is_random_in_one_case(found["body"]):
        return bool(_HEXADECIMAL.match(found["value"]) and _CALL.search(text[max(0, start - _NEAR) : start]))
    before = text[max(0, start - _BEFORE) : start].rpartition("\n")[2]
    signed = before.rstrip(_BETWEEN).endswith(_SIGNS)
    named = _NAME.search(before) if signed and not found["name"] else None
    name = found["name"] or (named["name"] if named else "")
    words = [*words_of(name), *words_of(named["word"] or "")] if named else words_of(name)
    words = words or [word.lower() for word in _WORD.findall(before[-_NEAR:])]
    if name in _OF_PUBLIC_KEY or not word_set("unnamed", "harmless").isdisjoint(words):
        return False
    length, end = len(found["value"]), start + found.end()
    if found["padding"] and length in _PADDED_HASHES:
        return False
    if name or (
        mixed and length >= _LEAST_UNANNOUNCED and length not in _BARE_HASHES and not _in_data(text, start, end)
    ):
        return True
    return _is_announced(before[-_NEAR:] + " " + text[end : end + _NEAR].partition("\n")[0])


def _in_data(text: str, start: int, end: int) -> bool:
    """Whether a word is one of several lines of base64."""
    return bool(_LINE_BEFORE.search(text[max(0, start - 120) : start]) or _LINE_BEHIND.match(text, end))


def _is_announced(line: str) -> bool:
    lowered = line.lower()
    words = set(_WORD.findall(lowered))
    if words & word_set("unnamed", "announcing") or any(strength_of(word) >= Strength.TOKEN for word in words):
        return True
    single, others = _names()
    return not words.isdisjoint(single) or any(
        name in lowered for name in others if not lowered.isascii() or name.isascii()
    )


@cache
def _names() -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the names of secrets in languages other than English: single words in ASCII, and all others."""
    tables = (word_table("prose.names"), word_table("prose.others"))
    names = {name.lower() for table in tables for language, some in table.items() if language != "en" for name in some}
    single = frozenset(name for name in names if name.isascii() and name.isalpha())
    return single, tuple(names - single)
