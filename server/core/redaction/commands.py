"""Secrets in the arguments of programs, such as `mysql -pSECRET` (`commands.toml`)."""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import cast

from esker.server.core.redaction.patterns import Pattern
from esker.server.core.redaction.scan import Scan
from esker.server.core.redaction.spans import Span
from esker.server.core.redaction.values import SHORTEST, is_placeholder, looks_random

# Characters of a command in which its options are looked for.
_LONGEST_COMMAND = 2000
_END_OF_COMMAND = re.compile(r"[\n|;&]")
_ECHO = frozenset(("echo", "printf"))
_PIPED = Pattern(
    r"(?:echo|printf)\s{1,4}(?:-\w{1,4}\s{1,4})?[\"']?(?:[\w.-]{1,40}:)?(?P<value>[^\s\"'|;&:]{6,200})[\"']?\s{0,4}\|\s{0,4}(?P<reader>[a-z-]{2,12})\b"
)
_VALUE = r"(?P<value>\"[^\"\n]{4,400}\"|'[^'\n]{4,400}'|[^\s\"'`;|&)<>\\]{4,400})"
# The name of a user; a mask has a colon, too.
_USER = r"(?:\[redacted:[\w-]{{1,40}}\]|(?!\[redacted:)[^\s:\"'/]{{1,100}})"
_FORMS = {
    "attached": rf"(?<=\s)(?:{{option}}){_VALUE}",
    "spaced": rf"(?<=\s)(?:{{option}})[= ]\s{{{{0,4}}}}(?!-){_VALUE}",
    "bare": rf"(?<=\s)(?:{{option}}){_VALUE}",
    "after-colon": rf"(?<=\s)(?:{{option}})[= ]{{{{0,4}}}}[\"']?{_USER}:(?![\"']\s){_VALUE}",
    "before-colon": r"(?<=\s)(?:{option})[= ]{{0,4}}[\"']?"
    r"(?P<value>(?=[^\s:\"']{{0,100}}\d)[\w.=-]{{16,400}}):(?=[\"'\s]|\Z)",
    "after-comma": rf"(?<=\s)(?:{{option}})[= ]{{{{0,4}}}}[\"']?[^\s,\"']{{{{1,100}}}},{_VALUE}",
    "after-slash": r"(?<=\s)[A-Za-z]\w{{0,40}}/(?P<value>[^\s/@\"']{{4,100}})@",
    "after-percent": rf"(?<=\s)(?:{{option}})[= ]{{{{0,4}}}}[\"']?[^\s%\"']{{{{1,100}}}}%{_VALUE}",
}


@cache
def _readers() -> frozenset[str]:
    return frozenset(cast(list[str], _tables()["readers"]))


@cache
def _tables() -> dict[str, object]:
    text = files("esker.server.core.redaction").joinpath("commands.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def _options() -> tuple[tuple[frozenset[str], tuple[str, ...], str], ...]:
    """Return words that the names of the programs contain, these names, and the pattern of each kind of option."""
    rows = cast(list[list[str]], _tables()["options"])
    return tuple(
        (
            frozenset(re.split(r"[|_-]", programs)),
            tuple(programs.split("|")),
            _FORMS[form].replace("{{", "{").replace("}}", "}").replace("{option}", option),
        )
        for programs, option, form in rows
    )


@cache
def _words() -> frozenset[str]:
    """Return all words of the names of programs; most texts contain none."""
    return frozenset[str]().union(*(words for words, _, _ in _options()))


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def arguments(scan: Scan) -> Iterator[Span]:
    """Yield the secrets among the arguments of programs."""
    if scan.words & _ECHO:
        for found in _PIPED.finditer(scan.text):
            value = found["value"]
            if found["reader"] in _readers() and not is_placeholder(value) and looks_random(value, SHORTEST):
                yield Span(found.start("value"), found.end("value"))
    present = scan.words & _words()
    for words, programs, pattern in _options() if present else ():
        for program in programs if words & present else ():
            yield from _in_commands(scan.text, program, pattern)


def _in_commands(text: str, program: str, pattern: str) -> Iterator[Span]:
    place = text.find(program)
    while place >= 0:
        start = place + len(program)
        if not text[place - 1 : place].isalnum() and text[start : start + 1] in (" ", "\t", "."):
            stop = _END_OF_COMMAND.search(text, start, start + _LONGEST_COMMAND)
            end = stop.start() if stop else min(len(text), start + _LONGEST_COMMAND)
            yield from _in_command(text, start, end, pattern)
            start = end
        place = text.find(program, start)


def _in_command(text: str, start: int, end: int, pattern: str) -> Iterator[Span]:
    for found in _pattern(pattern).finditer(text, start, end):
        value = found["value"].strip("\"'")
        # A word such as `login` may be prose; an option is not.
        sure = found[0][0] in "-/" or looks_random(value, SHORTEST)
        if sure and not is_placeholder(value) and not value.isdigit():
            first = found.start("value") + (found["value"][0] in "\"'")
            yield Span(first, first + len(value))
