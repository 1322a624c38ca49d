"""Tokens of makers that no list names: a short prefix before many random letters and digits."""

import re
from collections.abc import Iterator
from itertools import pairwise

from esker.server.core.redaction.formats import public_prefixes
from esker.server.core.redaction.patterns import Pattern
from esker.server.core.redaction.scan import Scan
from esker.server.core.redaction.spans import Span

_TOKEN = Pattern(
    r"(?<![A-Za-z0-9+/=_-])(?P<prefix>[A-Za-z][A-Za-z0-9]{1,11}+(?:[_.-][A-Za-z0-9]{1,10}+(?=[_.-])){0,3}[_.-])"
    r"(?P<body>[A-Za-z0-9_-]{24,200}+={0,2})(?![A-Za-z0-9+/_-])",
    re.ASCII,
)
_AFTER_LOGIN = Pattern(
    r"(?i)(?:login|authenticate|sign-?in|logon)\s{1,4}(?:--?[\w-]{1,30}[= ])?(?:<<<\s?)?[\"']?"
    r"(?P<body>[\w.~+/=-]{20,512}+)"
)
_SEPARATOR = Pattern(r"[_.-]")
_LOGIN = frozenset(("login", "logon", "authenticate", "sign", "signin"))
# Changes between small letters, capitals and digits in each character; random text has 0.6, words have 0.1 to 0.3.
_LEAST_CHANGES = 0.42
_CLASSES = str.maketrans(
    {
        **dict.fromkeys("abcdefghijklmnopqrstuvwxyz", "a"),
        **dict.fromkeys("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "A"),
        **dict.fromkeys("0123456789", "0"),
    }
)
_JUDGED = 200
_LEAST = 27
_LEAST_DIGITS = 3


def unknown_tokens(scan: Scan) -> Iterator[Span]:
    """Yield words that look like tokens of unknown makers, and random words behind `login`."""
    for start, word in scan.long_words:
        if len(word) >= _LEAST:
            for found in _TOKEN.finditer(word):
                first = _SEPARATOR.split(found["prefix"], maxsplit=1)[0]
                if first.lower() not in public_prefixes() and is_random(found[0][len(first) :]):
                    yield Span(start + found.start(), start + found.end(), "token")
    for found in scan.matches(_AFTER_LOGIN, _LOGIN):
        if is_random(found["body"]):
            yield Span(found.start("body"), found.end("body"), "token")


def is_random(word: str) -> bool:
    """Whether small letters, capitals and digits change as often as in random text."""
    classes = word[:_JUDGED].replace("_", "").replace("-", "").translate(_CLASSES)
    changes = sum(one != other for one, other in pairwise(classes))
    mixed = classes.count("0") >= _LEAST_DIGITS and "a" in classes and "A" in classes
    return mixed and changes >= _LEAST_CHANGES * len(classes)
