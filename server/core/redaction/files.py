"""Secrets in files of known programs: Kubernetes, .pgpass, netrc, tables with a column of passwords, JSON web keys."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import islice

from esker.server.core.redaction.names import Strength, strength_of
from esker.server.core.redaction.patterns import Pattern
from esker.server.core.redaction.scan import Scan, places
from esker.server.core.redaction.spans import GENERIC, Span
from esker.server.core.redaction.values import SHORTEST, Form, is_placeholder, is_secret, looks_random

_LONGEST_FILE = 20_000
_MOST_ROWS = 1000
_LONGEST_ROW = 400
_HEADED = frozenset(
    (
        "password",
        "passwd",
        "passphrase",
        "passcode",
        "pass",
        "pwd",
        "pw",
        "secret",
        "token",
        "apikey",
        "key",
        "credential",
        "credentials",
        "passwort",
        "kennwort",
        "senha",
        "contraseña",
        "wachtwoord",
        "motdepasse",
        "lösenord",
    )
)

_KUBERNETES = Pattern(r"[\"']?kind[\"']?\s{0,4}:\s{0,4}[\"']?Secret\b(?!\w)")
_DATA = Pattern(r"[\"']?(?:data|stringData)[\"']?[ \t]{0,4}:[ \t]{0,4}(?:\{|\n)")
_MEMBER = Pattern(r"[\"'\s{,](?P<key>[\w.-]{1,120})[\"']?[ \t]{0,4}:[ \t]{0,4}[\"']?(?P<value>[A-Za-z0-9+/=_.-]{6,})")
_UNINDENTED = Pattern(r"\n(?=[A-Za-z-])")

_PGPASS = Pattern(
    r"[ \t+]{0,8}(?:\d{1,5}[\t:|→ ]{1,3})?(?:[\w.*-]{1,120}|\[[0-9a-f:]{2,40}\])"
    r":(?:\d{2,5}|\*):[\w.*-]{1,80}:[\w.*@-]{1,80}:(?P<value>[^\s:]{4,200})\r?(?=\n|\Z)"
)
_NETRC = Pattern(
    r"(?i)\b(?:machine\s{1,9}\S{1,200}|default)\s{1,9}(?:login\s{1,9}\S{1,200}\s{1,9})?password\s{1,9}(?P<value>[^\s\"',;]{4,400})"
)
_WEB_KEY = Pattern(r"[\"'](?:d|p|q|dp|dq|qi|k)[\"']\s{0,4}:\s{0,4}[\"'](?P<value>[\w-]{16,})[\"']")
_XML_KEY = Pattern(r"<(?:D|P|Q|DP|DQ|InverseQ)>(?P<value>[A-Za-z0-9+/=\s]{16,2000})</")
_AUTH = Pattern(r"(?i)auth[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?P<value>[A-Za-z0-9+/]{12,512}={0,2})")
_AUTH_PAIR = Pattern(r"(?i)auth[\"']?\s{0,4}[:=]\s{0,4}[\"']?[\w.@+-]{1,60}:(?P<value>[^\s\"',;:/]{6,200})")
_AWS_PAIR = Pattern(r"(?:AKIA|ASIA)[A-Z0-9]{16}[\s,:;|\"'`]{1,8}(?P<value>[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=])")
_QUERY = Pattern(r"(?i)\w{3,9}=(?P<value>[\w%.+/=~-]{20,512})")
_IPSEC = Pattern(r"(?:PSK|EAP|XAUTH|NTLM)\s{1,9}\"(?P<value>[^\"\n]{6,200})\"")
_IPSEC_WORDS = frozenset(("psk", "eap", "xauth", "ntlm"))
_INSERT = Pattern(
    r"(?i)insert\s{1,9}into\s{1,9}[\w.\"`]{1,100}\s{0,9}\((?P<names>[^()]{1,1000})\)\s{0,9}values\s{0,9}\((?P<values>[^()]{1,4000})\)"
)
_INSERT_WORDS = frozenset(("insert",))
_CELL = Pattern(r"\s{0,40}(?:[\"'](?P<quoted>[^\"'\n]{0,400})[\"']|[^,\"']{0,400})\s{0,40}(?:,|\Z)")
_SIGNATURES = frozenset(("sig", "signature", "token", "code", "hmac"))
_NETRC_WORDS = frozenset(("machine", "default"))
_AUTH_WORDS = frozenset(("auth",))
_HEADING = Pattern(r"(?:[\w/.-]{1,30} ?){0,3}")
_COLUMNS = Pattern(r"[,;\t|]")


def known_files(scan: Scan) -> Iterator[Span]:
    """Yield the secrets in the forms of known files."""
    text = scan.text
    if "Secret" in text and "kind" in text:
        yield from _kubernetes(text)
    yield from _pgpass(text)
    for found in scan.matches(_NETRC, _NETRC_WORDS):
        if looks_random(found["value"], SHORTEST):
            yield from _values((found,))
    if "kty" in text:
        yield from _values(_WEB_KEY.finditer(text), "private-key")
    if "inverseq" in scan.words:
        yield from _values(_XML_KEY.finditer(text), "private-key")
    yield from _values(scan.matches(_AUTH, _AUTH_WORDS), least=12)
    yield from _values(scan.matches(_AUTH_PAIR, _AUTH_WORDS), least=6)
    if "AKIA" in text or "ASIA" in text:
        yield from _values(_AWS_PAIR.finditer(text), "aws-secret")
    yield from _values(scan.matches(_QUERY, _SIGNATURES), "signature", 20)
    yield from _values(scan.matches(_IPSEC, _IPSEC_WORDS))
    for found in scan.matches(_INSERT, _INSERT_WORDS):
        yield from _inserted(found)
    yield from _columns(scan)


def _inserted(found: re.Match[str]) -> Iterator[Span]:
    """Yield the values that an SQL statement inserts into columns such as `password`."""
    names = [name.strip(" \t\r\n\"`'") for name in found["names"].split(",")]
    for name, cell in zip(names, _CELL.finditer(found["values"]), strict=False):
        value, strength = cell["quoted"], strength_of(name)
        if value and strength >= Strength.TOKEN and is_secret(value, strength, Form.QUOTED):
            start = found.start("values") + cell.start("quoted")
            yield Span(start, start + len(value))


def _values(found: Iterable[re.Match[str]], kind: str = GENERIC, least: int = 0) -> Iterator[Span]:
    """Yield the values of matches that are no placeholders and, if `least` is given, look random."""
    for match in found:
        value = match["value"]
        if not is_placeholder(value) and (not least or looks_random(value.rstrip("="), least)):
            yield Span(match.start("value"), match.end("value"), kind)


def _pgpass(text: str) -> Iterator[Span]:
    for colon in places(text, ":"):
        # Only a line of .pgpass has a port and four colons; the search for lines would try each of a long text.
        if text[colon + 1 : colon + 2] in "0123456789*" and text.count(":", colon, colon + 300) >= 4:
            start = text.rfind("\n", max(0, colon - 140), colon) + 1
            found = _PGPASS.match(text, start)
            if found and not is_placeholder(found["value"]):
                yield Span(found.start("value"), found.end("value"))


def _kubernetes(text: str) -> Iterator[Span]:
    """Yield all values under `data` in a manifest of a Secret, which may come before its kind."""
    kinds = [found.start() for found in _KUBERNETES.finditer(text)]
    done = 0
    for data in _DATA.finditer(text) if kinds else ():
        before = bisect_left(kinds, data.start())
        near = [kind for kind in kinds[max(0, before - 1) : before + 1] if abs(kind - data.start()) < _LONGEST_FILE]
        if near and data.start() >= done:
            end = _end_of_members(text, data)
            for member in _MEMBER.finditer(text, data.end() - 1, end):
                done = member.end()
                yield Span(member.start("value"), done)


def _end_of_members(text: str, data: re.Match[str]) -> int:
    opened = data[0].endswith("{")
    end = text.find("}", data.end()) if opened else -1
    if not opened:
        stop = _UNINDENTED.search(text, data.end() - 1)
        end = stop.start() if stop else -1
    return min(len(text) if end < 0 else end, data.end() + _LONGEST_FILE)


def _columns(scan: Scan) -> Iterator[Span]:
    """Yield the cells below a heading such as `password` in tables with commas, semicolons, tabs or bars."""
    text = scan.text
    done = 0
    for place in sorted(place for word in _HEADED & scan.words for place in places(scan.lowered, word)):
        if place < done:
            continue
        start, end = text.rfind("\n", max(0, place - _LONGEST_ROW), place) + 1, text.find("\n", place)
        if start < done or end < 0 or end - start > _LONGEST_ROW:
            continue
        done = end
        columns = _heading(text, start, end)
        if columns:
            separator, wanted, count = columns
            for row, line in islice(_rows(text, end + 1, separator, count), _MOST_ROWS):
                yield from _cells(row, line, separator, wanted)
                done = row + len(line)


def _heading(text: str, start: int, end: int) -> tuple[str, list[tuple[int, Strength]], int] | None:
    """Return the separator of a heading, its columns with secrets, and the number of its columns."""
    found = _COLUMNS.search(text, start, end)
    # Hardly any line is followed by one with as many separators; that is quicker to see than all else.
    if not found or text.count(found[0], start, end) != text.count(found[0], end + 1, _end_of_row(text, end + 1)):
        return None
    cells = [cell.strip(" \t\r\n\"'*") for cell in text[start:end].split(found[0])]
    if sum(bool(cell) for cell in cells) < 2 or not all(_HEADING.fullmatch(cell) for cell in cells):
        return None
    strengths = [(column, strength_of(cell)) for column, cell in enumerate(cells)]
    wanted = [(column, strength) for column, strength in strengths if strength >= Strength.TOKEN]
    return (found[0], wanted, len(cells)) if wanted else None


def _end_of_row(text: str, place: int) -> int:
    end = text.find("\n", place, place + _LONGEST_ROW)
    return min(len(text), place + _LONGEST_ROW) if end < 0 else end


def _rows(text: str, place: int, separator: str, count: int) -> Iterator[tuple[int, str]]:
    while place < len(text):
        end = _end_of_row(text, place)
        if text.count(separator, place, end) != count - 1:
            return
        yield place, text[place:end]
        place = end + 1


def _cells(place: int, line: str, separator: str, wanted: list[tuple[int, Strength]]) -> Iterator[Span]:
    cells = line.split(separator)
    for column, strength in wanted:
        cell = cells[column]
        start = place + sum(len(before) + 1 for before in cells[:column]) + len(cell) - len(cell.lstrip(" \t\"'`*"))
        value = cell.strip(" \t\r\n\"'`*")
        if " " in value:
            continue
        if is_secret(value, strength, Form.BARE) or (strength is Strength.PASSWORD and looks_random(value, 6)):
            yield Span(start, start + len(value))
