"""A pool's file on this machine: written whole or not at all, checked, and read in parts that a server takes."""

import errno
import json
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from esker.server.core.errors import InvalidInput
from esker.server.core.pool.lines import TYPES, read_header

# Servers take bodies of 32 MiB, and hold some tens of times as much as a part while they read it.
PART_BYTES = 1024 * 1024
_AGAIN_HINT = "Export it again."
_END = b'{"type":"end"'
_LONGEST_END = 4_096


class FilePart(NamedTuple):
    """Lines that are sent together, the number of the first and how many there are; `lines` begin with the header."""

    first_line: int
    size: int
    lines: bytes


@contextmanager
def replaced(path: Path) -> Generator[BinaryIO]:
    """Write a file beside another one, whose place it takes at the end of the block, unless that fails.

    Nobody but its owner may read it. A link stays a link. What is there and is no file (a device, a pipe) is never
    replaced. Raises OSError.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "not a regular file")
    aside = target.with_name(f".{target.name}.esker-{os.getpid()}")
    try:
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


class Writing:
    """A pool's file that is being written: how many lines of each type there will be, and how many lines are there."""

    def __init__(self, file: BinaryIO) -> None:
        self.counts: dict[str, int] = {}
        self.lines = 0
        self._file = file
        self._head = b""
        self._tail = b""

    def take(self, piece: bytes) -> None:
        """Write what has come."""
        self._file.write(piece)
        self.lines += piece.count(b"\n")
        if not self.counts:
            self._head += piece
            header, found, _ = self._head.partition(b"\n")
            self.counts = read_header(header).counts if found else {}
        # The last line is short.
        self._tail = (self._tail + piece)[-_LONGEST_END:]

    def finish(self) -> None:
        """Raise InvalidInput for a file that was broken off."""
        if not self._tail.rstrip(b"\n").rpartition(b"\n")[2].startswith(_END):
            raise InvalidInput("The export was broken off before its end; no file was written.", hint=_AGAIN_HINT)


def check(path: Path) -> int:
    """Return how many lines a file has. Raises InvalidInput for one that is no pool's file, or not a whole one."""
    number, last = 0, ""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if number == 1:
                read_header(line)
            elif last == "end":
                raise InvalidInput(f"Line {number}: it stands behind the end.", hint=_AGAIN_HINT)
            else:
                last = _type_of(line, number)
    if number == 0:
        raise InvalidInput(f"{path} is empty.", hint=_AGAIN_HINT)
    if last != "end":
        raise InvalidInput(f"{path} was cut off: it has no end behind line {number}.", hint=_AGAIN_HINT)
    return number


def _type_of(line: bytes, number: int) -> str:
    try:
        found: Any = json.loads(line)
        name = found["type"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise InvalidInput(f"Line {number}: it is broken.", hint=_AGAIN_HINT) from None
    if name not in (*TYPES, "end"):
        raise InvalidInput(f"Line {number}: there is no such type of line as {str(name)[:40]!r}.")
    return str(name)


def parts_of(path: Path, limit: int = PART_BYTES) -> Iterator[FilePart]:
    """Yield the lines of a file in parts of about so many bytes.

    A part ends, where it can, behind a line that is no message, so that a group comes with what it covers.
    """
    with path.open("rb") as file:
        header = file.readline()
        first, held, size = 2, list[bytes](), 0
        for number, line in enumerate(file, start=2):
            if held and size + len(line) > 2 * limit:
                yield _part(header, first, held)
                first, held, size = number, [], 0
            held.append(line)
            size += len(line)
            if size >= limit and not line.startswith(b'{"type":"message"'):
                yield _part(header, first, held)
                first, held, size = number + 1, [], 0
        if held:
            yield _part(header, first, held)


def _part(header: bytes, first: int, lines: list[bytes]) -> FilePart:
    return FilePart(first, len(lines), b"".join([header, *lines]))


def halves(part: FilePart) -> tuple[FilePart, FilePart]:
    """Return a part of at least two lines as two."""
    header, *lines = part.lines.splitlines(keepends=True)
    middle = len(lines) // 2
    return _part(header, part.first_line, lines[:middle]), _part(header, part.first_line + middle, lines[middle:])
