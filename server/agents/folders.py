"""The files of a folder whose names match, and the paths that match but cannot be read."""

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from esker.server.agents.regular_file import obstacle

_MISSING = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


@dataclass(slots=True)
class SkippedFiles:
    """Skipped paths, with the reason: `no_files` are pipes, sockets, devices and broken links, `unreadable` are files
    and folders for which permission is missing or reading failed."""

    no_files: dict[str, str] = field(default_factory=dict[str, str])
    unreadable: dict[str, str] = field(default_factory=dict[str, str])


def files_in(folder: Path, matches: Callable[[str], bool], skipped: SkippedFiles) -> Iterator[Path]:
    """Yield the files of a folder, at any depth and in order, whose names match.

    Links to files are followed, links to folders are not, since they may form a cycle.
    """
    for directory, _, files in walked(folder, skipped):
        yield from (directory / name for name in files if matches(name) and is_file(directory / name, skipped))


def walked(folder: Path, skipped: SkippedFiles) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Yield each folder with the names of its folders and files; removing a name from the former skips that folder."""

    def record(error: OSError) -> None:
        if error.errno not in _MISSING:
            skipped.unreadable[str(error.filename)] = reason_of(error)

    for directory, names, files in os.walk(folder, onerror=record):
        names.sort()
        yield Path(directory), names, sorted(files)


def is_file(path: Path, skipped: SkippedFiles) -> bool:
    """Return whether a path is a regular file; otherwise record it as skipped."""
    try:
        found = obstacle(path)
    except OSError as error:
        if error.errno in _MISSING:
            skipped.no_files[str(path)] = "a broken link"
        else:
            skipped.unreadable[str(path)] = reason_of(error)
        return False
    if found:
        skipped.no_files[str(path)] = found
    return not found


def reason_of(error: OSError) -> str:
    """Return the text of an error without the path."""
    return error.strerror or type(error).__name__
