"""A MEMORY.md that a person edits by hand: facts of memory are added, and existing lines are never changed.

Lines are only inserted. The file has no marks: a fact that it already contains is recognised by its words, so a person
may move and reword lines. docs/decisions/memory-file.md says what that costs.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from zoneinfo import ZoneInfo

from esker.server.core.facts.same_fact import Fingerprint, fingerprint, same_fact
from esker.server.core.pack.rendering import reservations, without_reservations
from esker.server.core.records import PRIORITIES, Category, Facet, Kind, Priority, Trust
from esker.server.core.text.fencing import fenced

PROFILE, RULES, ARCHITECTURE, PATTERNS = "Profile", "Hard rules", "Architecture", "Patterns"
_ORDER = (PROFILE, RULES, ARCHITECTURE, PATTERNS)
_TITLE = "Memory"
_LEVEL = 2
_BYTE_ORDER_MARK = "\ufeff"

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*\Z")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*\Z")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r" {0,3}([-*+])[ \t]+\S")
_INDENTED = re.compile(r"(?: {2}|\t)[ \t]*\S")
_REFLECTED = re.compile(r"reflected \((\d{4}-\d\d-\d\d)\)\Z")
# The part of a line before its words: bullets, numbers, quotes, boxes.
_MARKER = re.compile(r"[ \t]*(?:[-*+>]|\d{1,9}[.)]|\[[ xX]\]|#{1,6})(?=[ \t])[ \t]*")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Remembered:
    """A row of memory for the file. Its line names the `project`, if set."""

    content: str
    kind: Kind
    priority: Priority
    category: Category
    facet: Facet | None
    tentative: bool
    trust: Trust
    said_at: datetime
    created_at: datetime
    project: str | None = None


@dataclass(frozen=True, slots=True)
class FileSection:
    """A section of the file. Sections of reflections have a day and come last, oldest first."""

    title: str
    day: date = date.min

    @property
    def sort_key(self) -> tuple[int, date]:
        """The sort key of the section."""
        return (_ORDER.index(self.title) if self.title in _ORDER else len(_ORDER)), self.day


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A line for the file, and its section."""

    section: FileSection
    text: str


@dataclass(frozen=True, slots=True)
class MergedFile:
    """The new text of a file, the added entries, and how many it contained already."""

    text: str
    added: list[FileEntry] = field(default_factory=list[FileEntry])
    known: int = 0


def entries_of(rows: Iterable[Remembered], timezone: ZoneInfo) -> list[FileEntry]:
    """Return the lines for rows, the highest priority first; days are those of `timezone`."""
    ordered = sorted(rows, key=lambda row: (PRIORITIES.index(row.priority), row.said_at, row.content))
    entries = (FileEntry(_section_of(row, timezone), _line_of(row)) for row in ordered)
    return [entry for entry in entries if entry.text]


def _section_of(row: Remembered, timezone: ZoneInfo) -> FileSection:
    if row.kind == "manual" or (row.category == "preference" and row.priority == "high" and not row.facet):
        return FileSection(RULES)
    if row.facet == "behavior" or row.category == "preference":
        return FileSection(PROFILE)
    if row.facet == "skill":
        return FileSection(PATTERNS)
    if row.facet == "knowledge" or (row.category == "decision" and not row.facet):
        return FileSection(ARCHITECTURE)
    moment = row.created_at if row.kind == "reflection" else row.said_at
    day = moment.astimezone(timezone).date()
    return FileSection(f"Reflected ({day.isoformat()})", day)


def _line_of(row: Remembered) -> str:
    """Return a row as one line of Markdown text, which cannot begin a comment that hides the lines after it."""
    text = fenced(row.content).replace("<!--", "&lt;!--")
    project = f" (project {fenced(row.project)})" if row.project and text else ""
    return text + (reservations(row) if text else "") + project


def merge(text: str, entries: Sequence[FileEntry]) -> MergedFile:
    """Add the entries that a file does not contain yet. Every line stays, byte for byte and in its order.

    Merging the same entries again adds nothing.
    """
    mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
    lines: list[str] = _LINE.findall(text.removeprefix(mark))
    content = _FileContent(lines)
    added = [entry for entry in entries if content.add(entry.text)]
    if not added:
        return MergedFile(text, [], len(entries))
    end = _line_end(text)
    if not "".join(lines).strip():
        lines = _inserted(lines, len(lines), [f"# {_TITLE}"], end)
    for section in sorted({entry.section for entry in added}, key=lambda section: section.sort_key):
        lines = _with_entries(lines, section, [entry.text for entry in added if entry.section == section], end)
    return MergedFile(mark + "".join(lines), added, len(entries) - len(added))


def _line_end(text: str) -> str:
    """Return the most frequent line end of a text."""
    windows = text.count("\r\n")
    return "\r\n" if windows * 2 > text.count("\n") else "\n"


# Existing content ----------------------------------------------------------------------------------------------------


class _FileContent:
    """The content of a file: its lines, its items and paragraphs (which may be wrapped), and their sentences."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._words: set[tuple[str, ...]] = set()
        self._prints: list[Fingerprint] = []
        for statement in dict.fromkeys(_statements_in(lines)):
            self._learn(statement)

    def add(self, text: str) -> bool:
        """Add an entry, and return whether it is new."""
        statement = _plain(text)
        mark = fingerprint(statement)
        if _words(statement) in self._words or any(same_fact(mark, other) for other in self._prints):
            return False
        self._learn(statement)
        return True

    def _learn(self, statement: str) -> None:
        self._words.add(_words(statement))
        self._prints.append(fingerprint(statement))


def _statements_in(lines: Sequence[str]) -> Iterator[str]:
    for block in _blocks(lines):
        yield from map(_plain, block)
        whole = " ".join(map(_plain, block))
        yield whole
        yield from _SENTENCE_END.split(whole)


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the items and paragraphs of a file, each as a list of lines."""
    block: list[str] = []
    for line in lines:
        quoted = bool(block) and block[-1].lstrip().startswith(">") and line.lstrip().startswith(">")
        if block and (not line.strip() or (_MARKER.match(line) and not quoted)):
            yield block
            block = []
        if line.strip():
            block.append(line)
    if block:
        yield block


def _plain(line: str) -> str:
    """Return a line without its markers and the reservations at its end."""
    while marker := _MARKER.match(line):
        line = line[marker.end() :]
    return without_reservations(line.strip())


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.casefold())) or (text,)


# Insertion -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Heading:
    """A heading: its first line, the line after it, its level from 1 to 6, and its title in lower case."""

    start: int
    end: int
    level: int
    title: str

    @property
    def sort_key(self) -> tuple[int, date] | None:
        """The sort key of the section; None for a heading that is not one of ours."""
        if found := _REFLECTED.match(self.title):
            try:
                return len(_ORDER), date.fromisoformat(found[1])
            except ValueError:
                return None
        return next((FileSection(title).sort_key for title in _ORDER if title.casefold() == self.title), None)


def _with_entries(lines: list[str], section: FileSection, texts: Sequence[str], end: str) -> list[str]:
    """Return the lines with entries added to a section, which is created if it is missing."""
    headings = list(_headings(lines))
    ours = [heading for heading in headings if heading.sort_key is not None]
    stops = [*(heading.start for heading in headings[1:]), len(lines)]
    for heading, stop in zip(headings, stops, strict=False):
        if heading.sort_key == section.sort_key:
            return _in_section(lines, heading.end, stop, texts, end)
    later = next((heading for heading in ours if heading.sort_key and heading.sort_key > section.sort_key), None)
    level = (later or (ours[-1] if ours else None) or _Heading(0, 0, _LEVEL, "")).level
    at = later.start if later else len(lines)
    new = [f"{'#' * level} {section.title}", "", *(f"- {text}" for text in texts)]
    return _inserted(lines, at, new, end)


def _in_section(lines: list[str], start: int, stop: int, texts: Sequence[str], end: str) -> list[str]:
    """Return the lines with entries added after the last line of the section from `start` to `stop`."""
    body = lines[start:stop]
    while body and not body[-1].strip():
        body.pop()
    bullets = [found[1] for line in body if (found := _ITEM.match(line))]
    new = [f"{bullets[-1] if bullets else '-'} {text}" for text in texts]
    goes_on = bool(bullets) and bool(_ITEM.match(body[-1]) or _INDENTED.match(body[-1]))
    return _inserted(lines, start + len(body), new, end, goes_on=goes_on)


def _inserted(lines: list[str], at: int, new: Sequence[str], end: str, *, goes_on: bool = False) -> list[str]:
    """Return the lines with new ones at `at`, separated by blank lines; `goes_on`: they continue a list."""
    before, after = lines[:at], lines[at:]
    if before and not before[-1].endswith(("\n", "\r")):
        before[-1] += end
    if before and before[-1].strip() and not goes_on:
        # After a lone CR, an LF would become part of the same line end.
        before.append("\r" if before[-1].endswith("\r") else end)
    blank = [end] if after and after[0].strip() else []
    return [*before, *(line + end for line in new), *blank, *after]


def _headings(lines: Sequence[str]) -> Iterator[_Heading]:
    """Yield the headings of a file, skipping frontmatter, code and comments."""
    at = _after_frontmatter(lines)
    while at < len(lines):
        line = lines[at].rstrip("\r\n")
        if found := _HEADING.match(line):
            yield _Heading(at, at + 1, len(found[1]), _title(found[2] or ""))
        elif (after := _after_code(lines, at) or _after_comment(lines, at)) is not None:
            at = after
            continue
        elif _is_underlined(lines, at):
            level = 1 if lines[at + 1].lstrip().startswith("=") else 2
            yield _Heading(at, at + 2, level, _title(line))
            at += 1
        at += 1


def _title(text: str) -> str:
    return " ".join(text.strip().strip("*_:").casefold().split())


def _after_frontmatter(lines: Sequence[str]) -> int:
    if not lines or lines[0].rstrip() != "---":
        return 0
    return next((at + 1 for at, line in enumerate(lines[1:], start=1) if line.rstrip() in ("---", "...")), 0)


def _after_code(lines: Sequence[str], at: int) -> int | None:
    """Return the line after a code block that begins here; None if none begins, or if it is never closed, which must be
    a mistake."""
    opened = _FENCE.match(lines[at])
    if not opened:
        return None
    closing = re.compile(rf" {{0,3}}{re.escape(opened[1][0])}{{{len(opened[1])},}}\s*\Z")
    return next((place + 1 for place in range(at + 1, len(lines)) if closing.match(lines[place])), None)


def _after_comment(lines: Sequence[str], at: int) -> int | None:
    """Return the line after a comment that begins here; None if none begins, or it is never closed."""
    if not lines[at].lstrip().startswith("<!--"):
        return None
    first = lines[at].partition("<!--")[2]
    if "-->" in first:
        return at + 1
    return next((place + 1 for place in range(at + 1, len(lines)) if "-->" in lines[place]), None)


def _is_underlined(lines: Sequence[str], at: int) -> bool:
    line = lines[at]
    if not line.strip() or _MARKER.match(line) or _INDENTED.match(line) or at + 1 == len(lines):
        return False
    # An underline makes the whole paragraph before it a heading; we only read headings of one line.
    return bool(_UNDERLINE.match(lines[at + 1].rstrip("\r\n"))) and (at == 0 or not lines[at - 1].strip())
