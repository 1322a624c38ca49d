"""A line of a synchronised folder: one memory, as people read and edit it.

It is a Markdown bullet: the mark of its priority, its words, and its id in a comment. Further lines are indented.
Agents read such files as well: no voice of a client or a model begins in one, and each of its characters can be seen.
"""

import hashlib
import re
import unicodedata
from dataclasses import dataclass

from esker.server.core.pack.rendering import MARK
from esker.server.core.records import Priority
from esker.server.core.text.fencing import visible, voiced, voiceless

_PRIORITY: dict[str, Priority] = {mark: priority for priority, mark in MARK.items()}
_BULLET = re.compile(rf"[-*+](?:[ \t]+|$)(?:({'|'.join(_PRIORITY)})\ufe0f?[ \t]*)?")
_ID = re.compile(r"[ \t]?(?<!\\)<!--[ \t]*(mem_[0-9A-Za-z_]*)[ \t]*-->")
_COMMENT = re.compile(r"(\\*)<!--")
_ESCAPED = re.compile(r"\\(\\*)<!--")
_BREAK = re.compile(r"\r\n?")
INDENT = "  "

LineKey = tuple[str, Priority, bool]
"""A line as the last sync remembers it: the hash of its words, which may be forgotten, its priority, its pin."""


@dataclass(frozen=True, slots=True)
class SyncLine:
    """The parts of a memory that a person can change: its words, its priority, and whether it is pinned."""

    text: str
    priority: Priority
    pinned: bool

    @property
    def key(self) -> LineKey:
        """The key that lines of one meaning share, whatever form of Unicode an editor writes."""
        words = unicodedata.normalize("NFC", self.text).encode("utf-8", "surrogatepass")
        return hashlib.sha256(words).hexdigest(), self.priority, self.pinned


def cleaned(content: str) -> str:
    """Return words as a file keeps them: without characters that no one sees, and without spaces at line ends.

    Editors remove these; spaces at both ends go, too.
    """
    text = _BREAK.sub("\n", content)
    # Some characters are kept only for the one beside them, which may have been removed.
    while (seen := visible(text)) != text:
        text = seen
    lines = [line.rstrip(" \t") for line in text.split("\n")]
    return "\n".join(lines).strip("\n").lstrip(" \t")


def rendered(line: SyncLine, memory_id: str) -> str:
    """Return a memory as a bullet of one or more lines, each with a line end. Its words must be `cleaned`."""
    first, *others = line.text.split("\n")
    head = f"- {MARK[line.priority]} {escaped(first)} <!-- {memory_id} -->\n"
    return head + "".join(f"{INDENT}{escaped(other)}\n" if other else "\n" for other in others)


def parsed(lines: list[str]) -> tuple[str, Priority | None, tuple[str, ...]]:
    """Return the words of a bullet, given as lines without line ends; its priority, if marked; and its ids."""
    head = _BULLET.match(lines[0])
    assert head is not None  # the caller has found the bullet
    unindented = [lines[0][head.end() :], *(_unindented(line) for line in lines[1:])]
    ids = tuple(memory_id for line in unindented for memory_id in _ID.findall(line))
    words = "\n".join(voiced(_ESCAPED.sub(r"\1<!--", _ID.sub("", line))) for line in unindented)
    return cleaned(words), _PRIORITY.get(head[1]) if head[1] else None, ids


def is_bullet(line: str) -> bool:
    """Whether a line begins a bullet at the left margin."""
    return bool(_BULLET.match(line))


def ids_in(text: str) -> list[str]:
    """Return the ids in the comments of any text."""
    return _ID.findall(text)


def escaped(text: str) -> str:
    """Return words in which no comment begins, and no voice."""
    return voiceless(_COMMENT.sub(r"\\\1<!--", text))


def _unindented(line: str) -> str:
    if line.startswith(INDENT):
        return line[len(INDENT) :]
    return line.removeprefix("\t")
