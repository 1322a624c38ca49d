"""Secrets in HTTP headers and in addresses."""

import re
from collections.abc import Iterator

from esker.server.core.redaction.patterns import Pattern
from esker.server.core.redaction.scan import Scan
from esker.server.core.redaction.spans import MASK, Span
from esker.server.core.redaction.values import is_placeholder, looks_random

_AUTHORIZATION = Pattern(
    r"(?i)authorization\\{0,8}[\"'`]?\]?\s{0,8}(?:[:=,]|=>)\s{0,8}[a-z]{0,1}\\{0,8}[\"'`]?\s{0,4}(?:(?P<scheme>[a-z][\w-]{1,30})\s{1,4})?(?P<value>[^\s\"'`,;<>\\]{8,512})"
)
# A name in code or a test: "Bearer valid_token".
_VARIABLE = Pattern(r"[a-z]{2,16}(?:[_-][a-z]{2,16}){1,3}")
_SIGNED = Pattern(r"(?i)\bsignature=(?P<value>[0-9a-z+/=%]{20,512})")
_BEARER = Pattern(r"(?i)(?:bearer|apikey|bot|basic),?\s{1,4}(?P<value>[\w.~+/=-]{16,512})")
_SCHEMES = frozenset(("bearer", "apikey", "bot", "basic"))
_COOKIE = Pattern(r"(?i)cookie\d?\\{0,8}[\"'`]?\s{0,4}[:=]\s{0,4}\\{0,8}[\"'`]?(?P<line>[^\n\"'`\\]{1,8000})")
_COOKIE_ARGUMENT = Pattern(r"\s(?:-b|--cookie)[= ]?[\"']?(?P<line>[\w.-]{1,80}=[^\n\"']{1,4000})")
_COOKIE_NAMES = frozenset(("cookie", "cookie2"))
_BEGINS_HEADER = Pattern(r"(?i)(?:\A|[\n\"'`{,(>*<|+]|\d[\t:|→])[ \t\\\"']{0,16}(?:set-|x-|document\.)?\Z")
_COOKIE_PAIR = Pattern(r"(?P<name>[\w.!#$%&*+^|~-]{1,120})=(?P<value>[^;\s\"'\\]{6,512})")
_SESSION = Pattern(
    r"(?i)sess|sid|auth|token|jwt|csrf|xsrf|login|user|remember|(?:\A|[^a-z])id(?:\Z|[^a-z])|secret|key|ticket"
)
_ATTRIBUTES = frozenset(
    (
        "path",
        "domain",
        "expires",
        "max-age",
        "samesite",
        "version",
        "priority",
        "theme",
        "lang",
        "locale",
        "timezone",
        "tz",
    )
)

_AFTER_SCHEME = Pattern(r"[^\s:/@\"'<>\\]{0,200}+:(?P<value>[^\s\"'`<>|\\]{1,500}+)")
_HOST = Pattern(r"@(?=[\w\[.-]+(?::\d+|:\$?\{?\w+\}?)?(?:[,/?#]|\Z|[^\w@]))")
_PORT = Pattern(r"\d{1,5}(?:/|\Z|[?#])")
_USER_TOKEN = Pattern(r"(?P<value>(?=[a-z-]*[A-Z\d])[\w-]{10,500}+)@")


def headers(scan: Scan) -> Iterator[Span]:
    """Yield the values of Authorization and Cookie headers."""
    yield from _authorizations(scan)
    for found in scan.matches(_BEARER, _SCHEMES):
        yield from _random(found)
    for found in scan.matches(_COOKIE, _COOKIE_NAMES):
        if _BEGINS_HEADER.search(scan.text[max(0, found.start() - 24) : found.start()]):
            yield from _cookies(found)
    if "curl" in scan.words or "http" in scan.words:
        for found in _COOKIE_ARGUMENT.finditer(scan.text):
            yield from _cookies(found)


def _authorizations(scan: Scan) -> Iterator[Span]:
    for found in scan.matches(_AUTHORIZATION, frozenset(("authorization",))):
        value = found["value"]
        if "=" in value.rstrip("=") and not looks_random(value.partition("=")[2], 16):
            for signed in _SIGNED.finditer(scan.text, found.end(), found.end() + 600):
                yield from _random(signed)
        elif (
            not is_placeholder(value) and not _VARIABLE.fullmatch(value) and (found["scheme"] or looks_random(value, 8))
        ):
            yield Span(found.start("value"), found.start("value") + len(value.rstrip(".,;:)]}")), "authorization")


def _random(found: re.Match[str]) -> Iterator[Span]:
    value = found["value"].rstrip(".")
    if looks_random(value, 16) and not is_placeholder(value):
        yield Span(found.start("value"), found.start("value") + len(value), "authorization")


def _cookies(line: re.Match[str]) -> Iterator[Span]:
    offset = line.start("line")
    for pair in _COOKIE_PAIR.finditer(line["line"]):
        value, name = pair["value"], pair["name"].lower()
        if name in _ATTRIBUTES or is_placeholder(value):
            continue
        if _SESSION.search(name) or looks_random(value, 16):
            yield Span(offset + pair.start("value"), offset + pair.end("value"), "cookie")


def addresses(scan: Scan) -> Iterator[Span]:
    """Yield the passwords, and the tokens in the place of users, of addresses such as `postgres://user:password@host`."""
    text = scan.text
    place = text.find("://")
    while place >= 0:
        is_masked = text.startswith(MASK, place + 3)
        span = None if is_masked else _password(text, place + 3) or _token(text, place + 3)
        if span:
            yield span
        place = text.find("://", max(place + 3, span.end if span else 0))


def _password(text: str, place: int) -> Span | None:
    found = _AFTER_SCHEME.match(text, place)
    if not found:
        return None
    rest = found["value"]
    another = rest.find("://")
    rest = rest[:another] if another >= 0 else rest
    end = max((sign.start() for sign in _HOST.finditer(rest)), default=-1)
    if end < 1 or _PORT.match(rest) or is_placeholder(rest[:end]):
        return None
    return Span(found.start("value"), found.start("value") + end, "url-password")


def _token(text: str, place: int) -> Span | None:
    found = _USER_TOKEN.match(text, place)
    return Span(place, found.end("value"), "url-password") if found and looks_random(found["value"], 10) else None
