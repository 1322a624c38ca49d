"""The files of a folder that are named like transcripts, and what is named like one and cannot be read."""

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from esker.server.agents.regular_file import obstacle

_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


@dataclass(slots=True)
class Aside:
    """What was met on the way, by path: `no_files` are pipes, sockets, devices and links that lead nowhere,
    `unreadable` is what may hold transcripts and nobody may look at; each with the reason."""

    no_files: dict[str, str] = field(default_factory=dict[str, str])
    unreadable: dict[str, str] = field(default_factory=dict[str, str])


def files_in(folder: Path, fits: Callable[[str], bool], aside: Aside) -> Iterator[Path]:
    """Yield the files of a folder, at any depth and in the order of their names, whose name fits.

    Links to files are followed, links to folders are not, since they may lead round in a circle.
    """
    for here, _, files in walked(folder, aside):
        yield from (here / name for name in files if fits(name) and is_file(here / name, aside))


def walked(folder: Path, aside: Aside) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Yield each folder with the names of the folders and of the rest in it; who removes folders is not led there."""

    def note(error: OSError) -> None:
        if error.errno not in _NOWHERE:
            aside.unreadable[str(error.filename)] = reason_of(error)

    for directory, names, files in os.walk(folder, onerror=note):
        names.sort()
        yield Path(directory), names, sorted(files)


def is_file(path: Path, aside: Aside) -> bool:
    """Tell whether a path is a file that can be opened; what it is instead is noted."""
    try:
        found = obstacle(path)
    except OSError as error:
        if error.errno in _NOWHERE:
            aside.no_files[str(path)] = "a link that leads nowhere"
        else:
            aside.unreadable[str(path)] = reason_of(error)
        return False
    if found:
        aside.no_files[str(path)] = found
    return not found


def reason_of(error: OSError) -> str:
    """Return why something could not be read, without the path."""
    return error.strerror or type(error).__name__
