"""Private keys as files have them: with or without their first line, indented, numbered, quoted or in a diff."""

import re
from bisect import bisect_right
from collections.abc import Iterator

from esker.server.core.redaction.patterns import Pattern
from esker.server.core.redaction.scan import Scan
from esker.server.core.redaction.spans import Span

_KIND = "private-key"
# Characters behind the first line of a key, or before its last line, that may belong to it.
_LONGEST_KEY = 16_384
_LEAST_LINES = 3
# Characters of a full line, and of one with the margin of a diff.
_WIDTHS = (64, 65, 70, 71, 76, 77)

_NAME = r"(?:[A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,8}|OpenVPN Static key V\d)"
_BEGIN = Pattern(rf"-{{4,5}} ?BEGIN {_NAME} ?-{{4,5}}")
_END = Pattern(rf"-{{4,5}} ?END {_NAME} ?-{{4,5}}")
_MARGIN = r"[\s\d+|>#:\"'*.,/\\`→│-]{0,24}?"
_LINE = Pattern(
    rf"{_MARGIN}(?:[A-Za-z0-9+/]{{8,}}={{0,2}}|[A-Za-z0-9+/]{{1,8}}={{1,2}}|=[A-Za-z0-9+/]{{4}})[\s\"',\\+]{{0,6}}"
)
_FIRST = Pattern(r"[^A-Za-z0-9+/\n]{0,12}[A-Za-z0-9+/=]{8,}+")
_HEADER = Pattern(rf"{_MARGIN}(?:(?:Proc-Type|DEK-Info|Comment|Version|Subject|X-\w+): [^\n]{{0,200}})?\s*")
_FULL_LINE = Pattern(
    rf"(?:\A|(?<=\n)){_MARGIN}(?P<body>[A-Za-z0-9+/]{{64}}(?:[A-Za-z0-9+/]{{6}}|[A-Za-z0-9+/]{{12}})?)[\s\"',\\+]{{0,6}}?(?=\n|\Z)"
)
_OTHER_BLOCK = Pattern(r"-----(?P<side>BEGIN|END) (?P<name>[A-Z0-9 ]{3,40})-----")
_PUTTY = Pattern(r"Private-Lines: (?P<count>\d{1,3})\r?\n")
_MAC = Pattern(r"Private-MAC: (?P<value>[0-9a-f]{32,})")
_LOOSE = Pattern(r"[A-Z]+[a-z]*\d|\d[A-Za-z]*[A-Z]")


def private_keys(scan: Scan) -> Iterator[Span]:
    """Yield the private keys in a text."""
    text = scan.text
    if "PRIVATE KEY" in text or "OpenVPN Static" in text:
        yield from _with_begin(text)
        yield from _with_end(text)
    if "Private-Lines" in text:
        yield from _putty(text)
    if sum(len(word) in _WIDTHS for _, word in scan.long_words) >= _LEAST_LINES:
        yield from _bodies(text)


def _with_begin(text: str) -> Iterator[Span]:
    ends = [end.end() for end in _END.finditer(text)]
    done = 0
    for begin in _BEGIN.finditer(text):
        if begin.start() < done:
            continue
        end = ends[index] if (index := bisect_right(ends, begin.end())) < len(ends) else len(text) + _LONGEST_KEY
        done = end if end - begin.end() < _LONGEST_KEY else _end_of_lines(text, begin.end())
        yield Span(begin.start(), done, _KIND)


def _end_of_lines(text: str, place: int) -> int:
    """Return the end of the lines of a key whose last line is missing."""
    first = _FIRST.match(text, place)
    end = place = first.end() if first else place
    while place < len(text):
        stop = text.find("\n", place + 1)
        stop = len(text) if stop < 0 else stop
        if stop - place > 400 or not (_LINE.fullmatch(text, place, stop) or _HEADER.fullmatch(text, place, stop)):
            found = _LINE.match(text, place, stop)
            return found.end() if found and len(found[0].strip()) >= 40 else end
        end = stop if _LINE.fullmatch(text, place, stop) else end
        place = stop
    return end


def _with_end(text: str) -> Iterator[Span]:
    done = 0
    for end in _END.finditer(text):
        start = end.start()
        while start > max(done, end.start() - _LONGEST_KEY):
            before = text.rfind("\n", max(done, start - 400), start - 1) + 1
            line = text[before:start].rstrip("\n")
            if before >= start or not _LINE.fullmatch(line):
                start = start if _LINE.fullmatch(line) is None else before
                break
            start = before
        yield Span(start, end.end(), _KIND)
        done = end.end()


def _putty(text: str) -> Iterator[Span]:
    for found in _PUTTY.finditer(text):
        end = found.end()
        for _ in range(int(found["count"])):
            stop = text.find("\n", end)
            end = len(text) if stop < 0 else stop + 1
        yield Span(found.end(), max(found.end(), end - (text[end - 1 : end] == "\n")), _KIND)
    for found in _MAC.finditer(text):
        yield Span(found.start("value"), found.end("value"), _KIND)


def _bodies(text: str) -> Iterator[Span]:
    """Yield runs of full lines of base64 that no line before or behind them calls a certificate or a public key."""
    run: list[re.Match[str]] = []
    for found in _FULL_LINE.finditer(text):
        if run and found.start() > run[-1].end() + 8:
            yield from _body(text, run)
            run = []
        if _LOOSE.search(found["body"]):
            run.append(found)
    yield from _body(text, run)


def _body(text: str, run: list[re.Match[str]]) -> Iterator[Span]:
    if len(run) < _LEAST_LINES:
        return
    start, end = run[0].start("body"), run[-1].end("body")
    before = list(_OTHER_BLOCK.finditer(text, max(0, start - _LONGEST_KEY), start))
    after = _OTHER_BLOCK.search(text, end, end + _LONGEST_KEY)
    if (before and before[-1]["side"] == "BEGIN") or (after and after["side"] == "END") or _is_data(text, start):
        return
    rest = text.find("\n", end)
    tail = _LINE.match(text, rest + 1) if rest >= 0 else None
    yield Span(start, tail.end() if tail and text[tail.end() - 1 : tail.end()].isspace() else end, _KIND)


def _is_data(text: str, start: int) -> bool:
    """Whether lines of base64 are the content of an address or of an e-mail."""
    before = text[max(0, start - 300) : start]
    return ";base64" in before or "Content-Transfer-Encoding" in before
