"""A pool's file on this machine: written whole or not at all, checked, and read in parts for a server."""

import errno
import glob
import json
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import psutil

from esker.server.core.errors import InvalidInput
from esker.server.core.pool.lines import TYPES, read_header

# Servers accept bodies of 32 MiB, but reading a part takes them some tens of times its size in memory, and slows other
# requests as long as it takes.
PART_BYTES = 256 * 1024
_AGAIN_HINT = "Export it again."
_END = b'{"type":"end"'
# Bytes of the end line, at most.
_LONGEST_END = 4_096


class FilePart(NamedTuple):
    """Lines that are sent together: the number of the first, their count, and their text after the header."""

    first_line: int
    size: int
    lines: bytes


@contextmanager
def replaced(path: Path) -> Generator[BinaryIO]:
    """Yield a temporary file that replaces `path` at the end of the block, unless the block fails.

    Only its owner may read it. A link stays a link. A device or a pipe is never replaced. Raises OSError.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "not a regular file")
    aside = target.with_name(f".{target.name}.esker-{os.getpid()}")
    _remove_left(target)
    try:
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def _remove_left(target: Path) -> None:
    """Remove what killed commands have left of `target`: it may contain all of a pool, and nobody looks for it."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.esker-*"):
        number = left.name.rpartition("-")[2]
        if number.isdecimal() and not psutil.pid_exists(int(number)):
            left.unlink(missing_ok=True)


class Writing:
    """A pool's file while it is written: the announced lines of each type, and the number of lines so far."""

    def __init__(self, file: BinaryIO) -> None:
        self.counts: dict[str, int] = {}
        self.lines = 0
        self._file = file
        self._head = b""
        self._tail = b""

    def take(self, piece: bytes) -> None:
        """Write a received piece."""
        self._file.write(piece)
        self.lines += piece.count(b"\n")
        if not self.counts:
            self._head += piece
            header, found, _ = self._head.partition(b"\n")
            self.counts = read_header(header).counts if found else {}
        self._tail = (self._tail + piece)[-_LONGEST_END:]

    def finish(self) -> None:
        """Raise InvalidInput if the file is incomplete."""
        if not self._tail.rstrip(b"\n").rpartition(b"\n")[2].startswith(_END):
            raise InvalidInput("The export broke off before its end; no file was written.", hint=_AGAIN_HINT)


def check(path: Path) -> int:
    """Return how many lines a file has. Raises InvalidInput if it is not a pool's file, or incomplete."""
    number, last = 0, ""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if number == 1:
                read_header(line)
            elif last == "end":
                raise InvalidInput(f"Line {number}: found after the end of the file.", hint=_AGAIN_HINT)
            else:
                last = _type_of(line, number)
    if number == 0:
        raise InvalidInput(f"{path} is empty.", hint=_AGAIN_HINT)
    if last != "end":
        raise InvalidInput(f"{path} is incomplete: line {number} is not the end.", hint=_AGAIN_HINT)
    return number


def _type_of(line: bytes, number: int) -> str:
    try:
        found: Any = json.loads(line)
        name = found["type"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise InvalidInput(f"Line {number}: not a valid line.", hint=_AGAIN_HINT) from None
    if name not in (*TYPES, "end"):
        raise InvalidInput(f"Line {number}: unknown type {str(name)[:40]!r}.")
    return str(name)


def parts_of(path: Path, limit: int = PART_BYTES) -> Iterator[FilePart]:
    """Yield the lines of a file in parts of about `limit` bytes.

    If possible, a part does not end with a message, so that it contains the group that covers its messages.
    """
    with path.open("rb") as file:
        header = file.readline()
        first, lines, size = 2, list[bytes](), 0
        for number, line in enumerate(file, start=2):
            if lines and size + len(line) > 2 * limit:
                yield _part(header, first, lines)
                first, lines, size = number, [], 0
            lines.append(line)
            size += len(line)
            if size >= limit and not line.startswith(b'{"type":"message"'):
                yield _part(header, first, lines)
                first, lines, size = number + 1, [], 0
        if lines:
            yield _part(header, first, lines)


def _part(header: bytes, first: int, lines: list[bytes]) -> FilePart:
    return FilePart(first, len(lines), b"".join([header, *lines]))


def halves(part: FilePart) -> tuple[FilePart, FilePart]:
    """Split a part of at least two lines."""
    header, *lines = part.lines.splitlines(keepends=True)
    middle = len(lines) // 2
    return _part(header, part.first_line, lines[:middle]), _part(header, part.first_line + middle, lines[middle:])
