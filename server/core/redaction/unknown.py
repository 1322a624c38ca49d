"""Tokens of makers that no list names: a short prefix before many random letters and digits."""

import re
from collections.abc import Iterator

from esker.server.core.redaction.formats import public_prefixes
from esker.server.core.redaction.patterns import Pattern
from esker.server.core.redaction.randomness import changes, is_random, is_random_in_one_case
from esker.server.core.redaction.scan import Scan
from esker.server.core.redaction.spans import UNKNOWN, Span

_TOKEN = Pattern(
    r"(?<![A-Za-z0-9+/_-])(?P<prefix>[A-Za-z][A-Za-z0-9]{1,11}+(?:[_.-][A-Za-z0-9]{1,10}+(?=[_.-])){0,3}(?P<sign>[_.-]))"
    r"(?P<body>[A-Za-z0-9_-]{20,400}+={0,2})(?![A-Za-z0-9+/_-])",
    re.ASCII,
)
_AFTER_LOGIN = Pattern(
    r"(?i)(?:login|authenticate|sign-?in|logon)\s{1,4}(?:--?[\w-]{1,30}[= ])?(?:<<<\s?)?[\"']?"
    r"(?P<body>[\w.~+/=-]{20,512}+)"
)
_SEPARATOR = Pattern(r"[_.-]")
_LOGIN = frozenset(("login", "logon", "authenticate", "sign", "signin"))
_HASH = Pattern(r"(?i)(?:sha-?\d{1,3}|md5|hash|digest|etag|integrity|checksum)=\Z")
_LONGEST_NAME = 12
# Small letters and digits, or capitals and digits, is a token if it is long and no hash.
_ONE_CASE = Pattern(r"(?:[a-z0-9]{28,}|[A-Z0-9]{28,})\Z")
_LEAST_CHANGES_OF_ONE_CASE = 4
_HEXADECIMAL = Pattern(r"[0-9a-f]+\Z|[0-9A-F]+\Z")
_LENGTHS_OF_HASHES = frozenset((32, 40, 56, 64, 96, 128))
_LENGTHS_OF_HASHES_IN_BASE64 = frozenset((22, 27, 43, 64, 86))
# A long prefix before a hash says what was hashed.
_LONGEST_PREFIX_OF_HASH = 5
# Parts of a prefix that name a credential, whatever comes before them.
_NAMES_TOKEN = frozenset(("sk", "pat", "api", "token", "secret", "live"))
_LEAST = 23
_LEAST_BODY = 24


def unknown_tokens(scan: Scan) -> Iterator[Span]:
    """Yield words that look like tokens of unknown makers, and random words behind `login`."""
    for start, word in scan.long_words:
        if len(word) >= _LEAST:
            for found in _TOKEN.finditer(word):
                hashed = _HASH.search(word, max(0, found.start() - _LONGEST_NAME), found.start())
                if not hashed and _is_token(found["prefix"], found["sign"], found["body"]):
                    yield Span(start + found.start(), start + found.end(), UNKNOWN)
    for found in scan.matches(_AFTER_LOGIN, _LOGIN):
        if is_random(found["body"]) or is_random_in_one_case(found["body"]):
            yield Span(found.start("body"), found.end("body"), UNKNOWN)


def _is_token(prefix: str, sign: str, body: str) -> bool:
    if _is_random_itself(prefix, body):
        return False
    parts = [part.lower() for part in _SEPARATOR.split(prefix) if part]
    named = not _NAMES_TOKEN.isdisjoint(parts)
    if parts[0] in public_prefixes() and not named:
        return False
    if is_random("".join(parts[1:]) + body) and (len(body) >= _LEAST_BODY or sign == "_"):
        return True
    if not _ONE_CASE.match(body) or not (named or public_prefixes().isdisjoint(parts)):
        return False
    if _HEXADECIMAL.match(body):
        hashed = len(body) in _LENGTHS_OF_HASHES and (sign != "_" or len(prefix) > _LONGEST_PREFIX_OF_HASH)
        return named or not hashed
    return sign == "_" and changes(body) >= _LEAST_CHANGES_OF_ONE_CASE


def _is_random_itself(prefix: str, body: str) -> bool:
    """Whether a prefix is the beginning of random text in base64url, such as a hash, and not a word."""
    first = _SEPARATOR.split(prefix)[0]
    hashed = len(prefix + body) in _LENGTHS_OF_HASHES_IN_BASE64
    return changes(first) > 1 or (hashed and (changes(first) == 1 or not body.isalnum()))
