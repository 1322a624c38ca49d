"""A file of a synchronised folder: front matter that says what it holds, bullets, and whatever else a person writes.

Only bullets are memories. Everything else (headings, paragraphs, tables, code, links, other front matter) is kept as it
is, and so is the bullet of a memory that has not changed.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from esker.server.core.pool.sync_line import SyncLine, escaped, is_bullet, parsed, rendered
from esker.server.core.records import Kind, Priority

TITLES: dict[Kind, str] = {
    "manual": "Pinned",
    "note": "Notes",
    "reflection": "Reflections",
    "observation": "Observations",
}
_KINDS: dict[str, Kind] = {kind: kind for kind in TITLES}
_BYTE_ORDER_MARK = "\ufeff"
_KEY = re.compile(r"esker_(pool|project|kind):[ \t]*(.*?)[ \t]*$")
# At most one space before it: lines of a memory, indented by two, must not open or close a person's fence.
_FENCE = re.compile(r" ?(`{3,}|~{3,})")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
# A line that ends a bullet even if no empty line is before it; other text belongs to the paragraph of the bullet.
_BLOCK = re.compile(r" {0,3}(?:#{1,6}(?:[ \t]|$)|>|\||<!--|=+[ \t]*$|-+[ \t]*$|\d{1,9}[.)][ \t])")
_CONFLICT, _CONFLICT_END = "<!-- esker-conflict", "<!-- /esker-conflict -->"


@dataclass(frozen=True, slots=True)
class Bullet:
    """A bullet: its words, its priority if it has a mark, the ids that it names, and its lines as they are."""

    text: str
    priority: Priority | None
    ids: tuple[str, ...]
    raw: str


@dataclass(frozen=True, slots=True)
class Head:
    """The contents of a file as its front matter names them; a project of None means memories of all projects."""

    pool: str
    project: str | None
    kind: Kind


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file. `blocks`: bullets, and any other text as it is. `head` is None in a file that is not Esker's."""

    head: Head | None
    blocks: tuple[Bullet | str, ...]
    newline: str = "\n"
    mark: str = ""

    @property
    def conflicts(self) -> int:
        """How many conflicts a person has not resolved yet."""
        return sum(block.startswith(_CONFLICT) for block in self.blocks if isinstance(block, str))


@dataclass(slots=True)
class Edits:
    """Changes of a document: bullets by their place in its blocks (None: removed), and memories that are added.

    `conflicts` are the words of a person, shown below the bullet at that place.
    """

    bullets: dict[int, tuple[str, SyncLine] | None] = field(default_factory=dict[int, "tuple[str, SyncLine] | None"])
    added: list[tuple[str, SyncLine]] = field(default_factory=list[tuple[str, SyncLine]])
    conflicts: dict[int, SyncLine] = field(default_factory=dict[int, SyncLine])


def parse(text: str) -> Document:
    """Return a file, parsed. Any text is valid."""
    mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.removeprefix(mark).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    front = _front_matter(lines)
    return Document(_head(lines[1 : front - 1]), tuple(_blocks(lines, front)), newline, mark)


def empty(head: Head) -> Document:
    """Return an empty file for a kind and a project."""
    named = {"pool": head.pool, "project": head.project or "", "kind": head.kind}
    front = "".join(f"esker_{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in named.items())
    return parse(f"---\n{front}---\n\n# {TITLES[head.kind]}\n\n")


def written(document: Document, edits: Edits) -> str:
    """Return the text of a document after edits. Without edits, it is the text that was parsed, in one newline form."""
    parts: list[str] = []
    last = max((place for place, block in enumerate(document.blocks) if isinstance(block, Bullet)), default=None)
    for place, block in enumerate(document.blocks):
        if isinstance(block, str):
            parts.append(block)
        elif place not in edits.bullets:
            parts.append(block.raw)
        elif (row := edits.bullets[place]) is not None:
            parts.append(rendered(row[1], row[0]))
        if place in edits.conflicts:
            parts.append(_conflict(edits.conflicts[place]))
        if place == last:
            parts += _added(edits.added, parts)
    if last is None:
        parts += _added(edits.added, parts)
    return document.mark + "".join(parts).replace("\n", document.newline)


def _added(rows: Sequence[tuple[str, SyncLine]], before: Iterable[str]) -> list[str]:
    """Return added bullets, on a line of their own."""
    text = "".join(before)
    return ["\n" if rows and text and not text.endswith("\n") else "", *(rendered(row, i) for i, row in rows)]


def _conflict(own: SyncLine) -> str:
    said = "\n".join(f"> {escaped(line)}".rstrip() for line in own.text.split("\n"))
    pinned = ", pinned" if own.pinned else ""
    return (
        f"\n{_CONFLICT} -->\n"
        "> [!warning] Changed here and in memory since the last sync. Memory is above; this was written here"
        f" (priority {own.priority}{pinned}):\n>\n{said}\n>\n"
        "> Write what is right into a line above or a new one, and delete this block.\n"
        f"{_CONFLICT_END}\n\n"
    )


def _front_matter(lines: Sequence[str]) -> int:
    """Return the number of lines of the front matter, 0 if there is none."""
    if lines[0].rstrip() != "---":
        return 0
    return next((number + 1 for number in range(1, len(lines)) if lines[number].rstrip() in ("---", "...")), 0)


def _head(front: Sequence[str]) -> Head | None:
    found = {key[1]: _unquoted(key[2]) for line in front if (key := _KEY.match(line))}
    kind = _KINDS.get(found.get("kind", ""))
    if kind is None or "pool" not in found or "project" not in found:
        return None
    return Head(found["pool"], found["project"] or None, kind)


def _unquoted(value: str) -> str:
    """Return a string of YAML, in the forms that we and common editors write."""
    if value[:1] == value[-1:] == "'" and len(value) > 1:
        return value[1:-1].replace("''", "'")
    try:
        read: object = json.loads(value)
    except ValueError:
        return value
    return read if isinstance(read, str) else value


def _blocks(lines: Sequence[str], place: int) -> Iterable[Bullet | str]:
    """Yield the blocks of a file whose front matter has `place` lines; text between two bullets is one or more."""
    if place:
        yield _joined(lines, 0, place)
    while place < len(lines):
        line = lines[place]
        end = place + 1
        if line.startswith(_CONFLICT):
            end = _closed(lines, place, re.compile(rf"[ \t]*{_CONFLICT_END}"), _CONFLICT)
        elif fence := _FENCE.match(line):
            end = _closed(lines, place, re.compile(rf" ?{fence[1]}"))
        elif is_bullet(line) and not _RULE.match(line):
            end = _end_of_bullet(lines, place)
            text, priority, ids = parsed(list(lines[place:end]))
            if text or ids:
                yield Bullet(text, priority, ids, _joined(lines, place, end))
                place = end
                continue
        yield _joined(lines, place, end)
        place = end


def _closed(lines: Sequence[str], start: int, mark: re.Pattern[str], beginning: str | None = None) -> int:
    """Return where a block ends whose last line begins with `mark`; if it is not closed, it is one line long.

    A line with the `beginning` of another block means that this one is not closed.
    """
    for place in range(start + 1, len(lines)):
        if mark.match(lines[place]):
            return place + 1
        if beginning and lines[place].startswith(beginning):
            break
    return start + 1


def _end_of_bullet(lines: Sequence[str], start: int) -> int:
    """Return where a bullet ends: with its last indented line, or the paragraph that begins in its first."""
    end = start + 1
    for place in range(start + 1, len(lines)):
        line = lines[place]
        if not line.strip(" \t"):
            continue
        is_indented = line.startswith(("  ", "\t"))
        goes_on = end == place and not (
            is_bullet(line) or _BLOCK.match(line) or _RULE.match(line) or _FENCE.match(line)
        )
        if not (is_indented or goes_on):
            break
        end = place + 1
    return end


def _joined(lines: Sequence[str], start: int, end: int) -> str:
    """Return lines with their line ends; the last of a file has none."""
    return "\n".join(lines[start:end]) + ("\n" if end < len(lines) else "")


def files_by_head(documents: Mapping[str, Document]) -> dict[Head, str]:
    """Return the first path of each head."""
    found: dict[Head, str] = {}
    for path in sorted(documents):
        if (head := documents[path].head) is not None:
            found.setdefault(head, path)
    return found
