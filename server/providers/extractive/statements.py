"""Reads a message as statements: its sentences, list items and table rows, each with the heading that it is under.

Markup, code blocks and rules are left out. A statement keeps the bold lead, the table header or the parent item that
says what it is about, so that it can be understood without the rest of the message.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from esker.server.providers.extractive.sentences import CODE_FENCE, EMPHASIS, QUOTED, clip, ends, split_sentences

# Maximum characters of a statement; an item of a list can have several sentences.
_LONGEST = 320
# Maximum characters of a heading, a parent item or an introduction that is put before a statement.
_LONGEST_TOPIC = 70
_HEADING = re.compile(r"^\s{0,3}(#{1,6})\s+(.+?)\s*#*$")
# A whole statement in brackets, with at most one level of brackets in it.
BRACKETED = re.compile(r"^[(（]((?:[^()（）]|[(（][^()（）]*[)）])*)[)）][.。]?$")
# Lengths of a line, in characters, at whose end a person may have wrapped a sentence.
_WRAPPED = range(45, 101)
# Text that a terminal has wrapped: minimum lines of a paragraph, minimum width, how much shorter than the longest line
# a wrapped one is at most, and minimum share of such lines.
_FEWEST_WRAPPED, _NARROWEST, _RAGGED, _MOSTLY_WRAPPED = 3, 60, 25, 0.6
# It looks back, since matching from each blank of a run takes quadratic time.
_LINE_END = re.compile(r"(?<![ \t])[ \t]*\n[ \t]*")
_RULE = re.compile(r"^\s*(?:[-*_=─━]\s*){3,}$")
_ITEM = re.compile(
    r"^(\s*)(?:(?:[-*+•–▸▪◦]|\d{1,2}[.)]|[✅❌✓✗✔☑→])\s+|[・●]\s*|\d{1,2}[、．）]\s*)(?:\[([ xX])\]\s*)?"
)
_TABLE_ROW = re.compile(r"^\s*\|(.+)\|\s*$")
_TABLE_RULE = re.compile(r"^[\s|:-]+$")
_LINK = re.compile(r"\[([^][\n]{1,200})\]\(([^)\s]{1,300})\)")
_BOLD_LINE = re.compile(r"^\s*(\*\*)(?=\S)([^*]{1,120}?)(?<=\S)\1\s*[:：]?\s*$")
_BOLD_LEAD = re.compile(r"^(\*\*)(?=\S)(.{1,80}?)(?<=\S)\1\s*(?:[:：—–-]+\s*)?")
_EMOJI = "\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff\u2600-\u27bf\ufe0e\ufe0f\u20e3"
# A joiner belongs to an emoji, except between letters.
_ORNAMENT = re.compile(rf"[{_EMOJI}][{_EMOJI}\u200D]*\s*|(?<!\S)\u200D\s*")
# Marks of a single star at the ends of words; those of "src/*.py" are not.
_SLANTED = re.compile(r"(?<![^\s(“\"])\*(?=[\w(¿¡“\"])([^*\n]{1,300})(?<=\S)\*(?![\w*])")
_NUMBER = re.compile(r"^\d{1,2}[.)]\s+")


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, an item or a row of a table, without markup.

    `headings` are the headings that it is under, the nearest last; `topic` is the parent item or the line with a colon
    that introduces it (it can be empty), `before` the sentence before it in its paragraph. `is_item`: it belongs to a
    list or a table; `columns` is the head of the table.
    """

    text: str
    headings: tuple[str, ...] = ()
    topic: str = ""
    columns: str = ""
    before: str = ""
    is_item: bool = False


def statements(text: str) -> list[Statement]:
    """Return the statements of a message in order; code blocks and quotations are left out."""
    return list(_LineReader().read(ends(text)))


class _LineReader:
    """Reads lines, with the heading, the introduction and the parent items of the line that is read."""

    def __init__(self) -> None:
        self.headings: list[tuple[int, str]] = []
        self.introduction = ""
        self.parents: list[tuple[int, str]] = []
        self.columns: list[str] | None = None

    def read(self, text: str) -> Iterator[Statement]:
        """Yield the statements of a text."""
        fenced = False
        plain: list[str] = []
        for line in text.splitlines():
            if CODE_FENCE.match(line):
                fenced = not fenced
            elif not fenced and not QUOTED.match(line):
                plain.append(line)
        for line in _unwrapped(plain):
            yield from self._line(_LINE_END.sub(" ", line))

    def _line(self, line: str) -> Iterator[Statement]:
        if _TABLE_ROW.match(line):
            yield from self._row(line)
            return
        self.columns = None
        if not line.strip():
            self.parents.clear()
        elif _RULE.match(line):
            self.introduction = ""
        elif heading := _HEADING.match(line):
            self._begin_section(len(heading[1]), _plain(heading[2]).rstrip(":："))
        elif bold := _BOLD_LINE.match(line):
            self.introduction = _plain(bold[2]).rstrip(":：")
            self.parents.clear()
        elif item := _ITEM.match(line):
            yield from self._item(len(item[1].expandtabs(4)), line[item.end() :])
        elif self.parents and line.startswith("  "):
            yield from self._item(len(line) - len(line.lstrip()), line.strip())
        else:
            self.parents.clear()
            yield from self._paragraph(line)

    def _begin_section(self, level: int, heading: str) -> None:
        self.headings = [*((its, text) for its, text in self.headings if its < level), (level, heading)]
        self.introduction = ""
        self.parents.clear()

    def _paragraph(self, line: str) -> Iterator[Statement]:
        self.introduction = ""
        lead = _BOLD_LEAD.match(line.strip())
        if lead and len(line.strip()) > lead.end():
            said = _led(line.strip())
            if said.endswith((":", "：")):
                self.introduction = said.rstrip(":： ")
            else:
                yield self._statement(said, is_item=True)
            return
        before = ""
        for sentence in split_sentences(_plain(line)):
            if sentence.endswith((":", "：")):
                self.introduction = sentence.rstrip(":： ")
            # An introduction that is too long to be put before its items is a statement, with its colon.
            if not self.introduction or len(self.introduction) > _LONGEST_TOPIC:
                yield replace(self._statement(sentence, is_item=False), before=before)
            before = sentence

    def _item(self, indent: int, text: str) -> Iterator[Statement]:
        while self.parents and self.parents[-1][0] >= indent:
            self.parents.pop()
        said = _led(text.strip())
        if said.endswith((":", "：")):
            self.parents.append((indent, said.rstrip(":： ")))
            return
        yield self._statement(said, is_item=True)
        self.parents.append((indent, said if len(said) <= _LONGEST_TOPIC else ""))

    def _row(self, line: str) -> Iterator[Statement]:
        cells = [_plain(cell.strip()) for cell in line.strip().strip("|").split("|")]
        if self.columns is None:
            self.columns = cells
        elif not _TABLE_RULE.match(line) and any(cells):
            first, *rest = cells
            columns = [*self.columns[1:], *([""] * len(rest))]
            named = [
                f"{columns[place]}: {cell}" if place and columns[place] else cell
                for place, cell in enumerate(rest)
                if cell.strip("—–- ")
            ]
            if named:
                yield self._statement(f"{first}: {'; '.join(named)}" if first else "; ".join(named), is_item=True)

    def _statement(self, text: str, *, is_item: bool) -> Statement:
        parent = self.parents[-1][1] if self.parents and is_item else ""
        topic = parent or (self.introduction if is_item else "")
        return Statement(
            text=clip(text, _LONGEST),
            headings=tuple(heading for _, heading in self.headings),
            topic=topic if len(topic) <= _LONGEST_TOPIC else "",
            columns=" ".join(self.columns or ()),
            is_item=is_item,
        )


def _unwrapped(lines: Sequence[str]) -> Iterator[str]:
    """Yield lines, each with the lines that go on with its sentence, behind line feeds."""
    for is_text, paragraph in groupby(lines, key=lambda line: bool(line.strip())):
        if not is_text:
            yield from paragraph
            continue
        some = list(paragraph)
        shortest = _shortest_wrapped(some)
        whole = last = some[0]
        for line in some[1:]:
            if not _begins(line) and (len(last.rstrip()) >= shortest or _goes_on(whole, last.rstrip(), line.strip())):
                whole += f"\n{line}"
            else:
                yield whole
                whole = line
            last = line
        yield whole


def _shortest_wrapped(paragraph: Sequence[str]) -> float:
    """Return the minimum length of a line that a terminal has wrapped; infinity if most lines end by themselves."""
    lengths = [len(line.rstrip()) for line in paragraph]
    shortest = max(lengths) - _RAGGED
    full = sum(length >= shortest for length in lengths[:-1])
    is_wrapped = len(lengths) >= _FEWEST_WRAPPED and max(lengths) >= _NARROWEST
    return shortest if is_wrapped and full >= _MOSTLY_WRAPPED * (len(lengths) - 1) else math.inf


def _begins(line: str) -> bool:
    """Whether a line begins something: an item, a heading, a row of a table or bold words."""
    return (
        any(form.match(line) for form in (_ITEM, _HEADING, _TABLE_ROW, _RULE, _BOLD_LINE)) or line.lstrip()[:2] == "**"
    )


def _goes_on(whole: str, last: str, line: str) -> bool:
    """Whether a line goes on with the sentence of the line before, which is wrapped at its end."""
    if len(last) not in _WRAPPED or not (last[-1].isalnum() or last.endswith((",", '"'))):
        return False
    return line[:1].islower() or whole.count("(") > whole.count(")")


def _led(text: str) -> str:
    """Return an item without markup, its bold lead followed by a colon."""
    lead = _BOLD_LEAD.match(text)
    rest = text[lead.end() :].strip() if lead else ""
    # A mark behind bold words goes on with their sentence.
    if not lead or rest.startswith((",", ";")):
        return _plain(text)
    name = _plain(lead[2]).rstrip(":：. ")
    return f"{name}: {_plain(rest)}" if rest else name


def _plain(text: str) -> str:
    """Return a text without emphasis, ornaments, link targets and a number at its beginning."""
    text = _LINK.sub(_link_text, _SLANTED.sub(r"\1", EMPHASIS.sub(r"\2", text)))
    return _NUMBER.sub("", _ORNAMENT.sub("", text)).strip()


def _link_text(link: re.Match[str]) -> str:
    return link[1] if link[1] in link[2] or link[2].startswith("#") else f"{link[1]} ({link[2]})"
