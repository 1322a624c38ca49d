"""The files of a synchronised folder on the disk: reading all of them, and writing those that change, each at once."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from esker.server.agents.install.disk import write
from esker.server.core.pool.sync_document import Document, Edits, parse, written
from esker.server.core.pool.sync_plan import SyncProblem

_MODE = 0o600
# Copies that editors keep while they write: .name.swp, .#name, ~$name, #name#.
_TEMPORARY = (".", "~", "#")


@dataclass(slots=True)
class ReadFolder:
    """The Markdown files below a folder: their bytes and contents by path with slashes, and those that are no text.

    `taken` has the lower-case paths of all files, of folders that look like files, and of links: no new file goes
    there, nor below one of them. Some disks do not tell upper case from lower case.
    """

    data: dict[str, bytes] = field(default_factory=dict[str, bytes])
    documents: dict[str, Document] = field(default_factory=dict[str, Document])
    problems: list[SyncProblem] = field(default_factory=list[SyncProblem])
    taken: set[str] = field(default_factory=set[str])

    @property
    def unread(self) -> set[str]:
        """The paths of files whose memories are not known."""
        return {problem.path for problem in self.problems}


def read_folder(folder: Path) -> ReadFolder:
    """Return the files of a folder; none if it does not exist. Raises OSError."""
    found = ReadFolder()
    for path in _files(folder, found.taken):
        name = path.relative_to(folder).as_posix()
        found.data[name] = path.read_bytes()
        try:
            found.documents[name] = _document(found.data[name].decode("utf-8"))
        except UnicodeDecodeError:
            found.problems.append(SyncProblem(name, "It is not UTF-8; save it as UTF-8."))
    return found


def _document(text: str) -> Document:
    """Return a file, parsed unless it has nothing of Esker's: a vault may have many large ones."""
    return parse(text) if "esker_" in text or "mem_" in text else Document(None, (text,))


def _files(folder: Path, taken: set[str]) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        # Skip folders of editors and of Git: .obsidian, .trash, .git.
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in [*folders, *sorted(names)]:
            path = Path(place, name)
            if name in names or path.is_symlink() or name.lower().endswith(".md"):
                taken.add(path.relative_to(folder).as_posix().lower())
        for name in sorted(names):
            path = Path(place, name)
            if name.lower().endswith(".md") and not name.startswith(_TEMPORARY) and _is_plain(path):
                yield path


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def write_files(
    folder: Path, read: ReadFolder, documents: Mapping[str, Document], edits: Mapping[str, Edits]
) -> tuple[list[str], list[SyncProblem]]:
    """Write the files that change; return their paths, and those that were left because they changed meanwhile."""
    changed: list[str] = []
    left: list[SyncProblem] = []
    for name in sorted(edits):
        path = folder / name
        data = written(documents[name], edits[name]).encode("utf-8")
        there = path.read_bytes() if _is_plain(path) else None
        if there != read.data.get(name) or (there is None and os.path.lexists(path)):
            left.append(SyncProblem(name, "It was saved during the sync and is left as it is; run the sync again."))
        elif data != there:
            write(path, data, _MODE)
            changed.append(name)
    return changed, left
