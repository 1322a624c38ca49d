"""Keys and tokens in formats that their makers document (`formats.toml`)."""

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import accumulate
from typing import NamedTuple, cast

from esker.server.core.redaction.patterns import Pattern
from esker.server.core.redaction.scan import Scan, places
from esker.server.core.redaction.spans import MASK, Span

_DIGIT = Pattern(r"[0-9]")
# A token has at least so many different characters; they are counted in so many of a long word.
_LEAST_SIGNS = 5
_JUDGED = 4096
_LONG_PARTS = Pattern(r"[\w+~%$!*#-]{16,}", re.ASCII)
_LONG_RUN = Pattern(r"[A-Za-z]{16}")
# A part may be followed by a part or two, a signature of which may be missing.
_PARTS = Pattern(r"[\w-]++(?=\.)", re.ASCII)
_FOLLOWING_PARTS = Pattern(r"(?:\.[\w-]{4,}+){1,4}+(?:\.(?=\W|\Z))?", re.ASCII)
_BEGINNING = Pattern(r"(?<![A-Za-z0-9])[^\n]{2}")
_SIGN = Pattern(r"[^A-Za-z0-9\n]")
# The first sign of a literal text, with the two characters before it.
_SIGNED = Pattern(r"[A-Za-z0-9]*?(?P<key>[A-Za-z0-9]{2}[^A-Za-z0-9])")
# Characters before the literal text of a format in which its beginning is looked for.
_MOST_BEFORE = 120


class _Format(NamedTuple):
    kind: str
    literal: str
    body: str
    before: str = ""
    bounded: bool = False


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


@cache
def _tables() -> dict[str, object]:
    text = files("esker.server.core.redaction").joinpath("formats.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def public_prefixes() -> frozenset[str]:
    """Return the beginnings of identifiers that look like tokens and are shown to anyone."""
    return frozenset(cast(dict[str, str], _tables()["public"])["prefixes"].split())


def known_literals() -> frozenset[str]:
    """Return the literal texts of which each token of a known format contains one."""
    return frozenset(known.literal for known in _formats())


@cache
def _formats() -> tuple[_Format, ...]:
    prefixed = cast(dict[str, list[str]], _tables()["prefixed"])
    inside = cast(dict[str, list[list[str]]], _tables()["inside"])
    return (
        *(_prefixed(kind, entry) for kind, entries in prefixed.items() for entry in entries),
        *(
            _Format(kind, literal, body, before)
            for kind, entries in inside.items()
            for before, literal, body in entries
        ),
    )


def _prefixed(kind: str, entry: str) -> _Format:
    literal, _, body = entry.partition(" ")
    return _Format(kind, literal.removeprefix("^"), body, bounded=literal.startswith("^"))


def known_formats(scan: Scan) -> Iterator[Span]:
    """Yield the tokens of known formats in a text; each of them is a long word, or part of one."""
    words = [(place, word) for place, word in scan.long_words if _may_hold_token(word)]
    if not words:
        return
    joined = "\n".join(word for _, word in words)
    begins = list(accumulate((len(word) + 1 for _, word in words), initial=0))
    beginnings = _beginnings(joined)
    for known in _present(joined, beginnings):
        found = beginnings.get(known.literal[:2], ()) if known.bounded else places(joined, known.literal)
        for start, end, kind in _tokens(known, joined, found):
            index = bisect_right(begins, start) - 1
            moved = words[index][0] - begins[index]
            yield Span(start + moved, end + moved, kind)


def _present(joined: str, beginnings: Mapping[str, list[int]]) -> Iterator[_Format]:
    """Yield the formats whose literal text is in some lines; most are ruled out by a look at the lines' signs."""
    by_beginning, by_sign, others = _index()
    signs = {joined[max(0, sign.start() - 2) : sign.end()] for sign in _SIGN.finditer(joined)}
    for start in by_beginning.keys() & beginnings.keys():
        yield from (known for known in by_beginning[start] if known.literal in joined)
    for key in by_sign.keys() & signs:
        yield from (known for known in by_sign[key] if known.literal in joined)
    yield from (known for known in others if known.literal in joined)


_Index = Mapping[str, Sequence[_Format]]


@cache
def _index() -> tuple[_Index, _Index, Sequence[_Format]]:
    """Return the formats by how the literal text of each begins, by its first sign, and those that have neither."""
    by_beginning: dict[str, list[_Format]] = {}
    by_sign: dict[str, list[_Format]] = {}
    others: list[_Format] = []
    for known in _formats():
        signed = _SIGNED.match(known.literal)
        if known.bounded:
            by_beginning.setdefault(known.literal[:2], []).append(known)
        elif signed:
            by_sign.setdefault(signed["key"], []).append(known)
        else:
            others.append(known)
    return by_beginning, by_sign, others


def _beginnings(joined: str) -> Mapping[str, list[int]]:
    """Return the places that follow no letter or digit, by their first two characters and by their first."""
    found: dict[str, list[int]] = {}
    for place in _BEGINNING.finditer(joined):
        found.setdefault(place[0], []).append(place.start())
        found.setdefault(place[0][0], []).append(place.start())
    return found


def web_tokens(scan: Scan) -> Iterator[Span]:
    """Yield the JSON Web Tokens in a text: parts with full stops between them, the first of which is JSON in base64."""
    for offset, word in scan.long_words:
        if "eyJ" in word and "." in word:
            yield from (Span(offset + start, offset + end, "jwt") for start, end in _web_tokens(word))


def _web_tokens(word: str) -> Iterator[tuple[int, int]]:
    place = 0
    for part in _PARTS.finditer(word):
        start = part[0].find("eyJ") + part.start()
        following = _FOLLOWING_PARTS.match(word, part.end())
        if start >= max(place, part.start()) and part.end() - start > 10 and following:
            place = following.end()
            yield start, place


def _may_hold_token(word: str) -> bool:
    """Whether a word has a part that is as long and mixed as that of a token, unlike most paths and identifiers."""
    return "hooks." in word or any(
        (not part.islower() or _DIGIT.search(part) or _LONG_RUN.search(part))
        and len(set(part[:_JUDGED])) >= _LEAST_SIGNS
        for part in _LONG_PARTS.findall(word)
    )


def _tokens(known: _Format, text: str, found_at: Iterable[int]) -> Iterator[Span]:
    """Yield the tokens of a format in lines, whose literal text may begin at some places in order."""
    body, done = _pattern(known.body), 0
    for place in found_at:
        if place < done or not text.startswith(known.literal, place):
            continue
        found = body.match(text, place + len(known.literal))
        start = _beginning(known, text, place) if found else None
        if found and start is not None:
            if _varies(text[start : found.end()], known.literal):
                yield Span(start, found.end(), known.kind)
            # A part of a token varies no more than all of it, so no other token begins inside.
            done = found.end()


def _beginning(known: _Format, word: str, place: int) -> int | None:
    if not known.before:
        return place
    first = max(0, place - _MOST_BEFORE)
    found = _pattern(rf"(?:{known.before})\Z").search(word[first:place])
    return first + found.start() if found else None


def _varies(token: str, literal: str) -> bool:
    """Whether a token is more than a placeholder such as `sk-xxxxxxxx` or `ghp_YOUR_TOKEN`."""
    rest = token.replace(literal, "", 1)
    if len(set(rest)) < _LEAST_SIGNS or MASK in token:
        return False
    plain = rest.islower() or rest.isupper()
    return not plain or bool(_DIGIT.search(token) or _LONG_RUN.search(rest))
