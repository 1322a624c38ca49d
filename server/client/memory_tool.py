"""Anthropic's memory tool (memory_20250818) with its files in Esker: found by recall like everything else.

A file is a note, named after its path. Its first line is the path, so that it is found by that, too, and a tag says how
many line ends its text ends with, which a note does not keep. An edit replaces the note, so older versions are kept as
superseded; deleting forgets all of them.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anthropic.lib.tools import BetaAsyncAbstractMemoryTool, ToolError

from esker.server.core.counts import counted
from esker.server.core.errors import Conflict, EskerError, NotFound
from esker.server.core.json_input import clean_text
from esker.server.core.records import SourcedMemory

if TYPE_CHECKING:
    from anthropic.types.beta import (
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )

    from esker.server.client.esker import Esker

MOST_CHARACTERS = 15_000
"""What a file may hold."""
_ROOT = "/memories"
_ALL = "memory-file"
_LONGEST_PATH = 400
_PART = re.compile(r"[^/\\\x00-\x1f\x7f]+")
_ESCAPED = re.compile(r"%(?:2e|2f|5c|00)", re.IGNORECASE)
_ENDS = "line-ends:"
_DEPTH = 2


@dataclass(frozen=True, slots=True)
class _NoteFile:
    """A file as it is now: the id of its note is its version."""

    path: str
    text: str
    id: str


class EskerMemoryTool(BetaAsyncAbstractMemoryTool):
    """The memory tool for `client.beta.messages.tool_runner`; files belong to a project, or to all of a pool."""

    def __init__(self, esker: "Esker", project: str | None = None) -> None:
        super().__init__()
        self._esker = esker
        self._project = project

    async def view(self, command: "BetaMemoryTool20250818ViewCommand") -> str:
        """Show a file with its line numbers, or what a directory holds."""
        path = _checked(command.path)
        files = await self._files()
        if path not in files:
            return _directory(path, files)
        lines = files[path].text.split("\n")
        first, last = 1, len(lines)
        if command.view_range:
            first, last = max(1, command.view_range[0]), command.view_range[-1]
            last = len(lines) if last == -1 else min(last, len(lines))
            if first > last:
                raise ToolError(f"{path} has {counted(len(lines), 'line')}; there is nothing from {first} to {last}.")
        return f"{path}, with line numbers:\n" + _numbered(lines, first, last)

    async def create(self, command: "BetaMemoryTool20250818CreateCommand") -> str:
        """Make a file that is not there yet."""
        path = _checked(command.path, is_file=True)
        files = await self._files()
        _check_free(path, files)
        _check_size(path, command.file_text)
        try:
            await self._esker.remember(
                _content(path, command.file_text),
                project=self._project,
                tags=self._tags(command.file_text),
                external_id=self._name(path),
            )
        except Conflict as error:
            raise ToolError(f"{path} was made by somebody else meanwhile. View it.") from error
        except EskerError as error:
            raise _told(error) from error
        return f"{path} was made."

    async def str_replace(self, command: "BetaMemoryTool20250818StrReplaceCommand") -> str:
        """Replace a text that a file has exactly once."""
        file = await self._file(command.path)
        count = file.text.count(command.old_str) if command.old_str else 0
        if count != 1:
            many = f"is {count} times in {file.path}; add what stands around it" if count else f"is not in {file.path}"
            raise ToolError(f"Nothing was replaced: {command.old_str!r} {many}.")
        place = file.text.index(command.old_str)
        new = command.new_str or ""
        text = file.text[:place] + new + file.text[place + len(command.old_str) :]
        await self._edit(file, text)
        line = text.count("\n", 0, place) + 1
        lines = text.split("\n")
        shown = _numbered(lines, max(1, line - 2), min(len(lines), line + new.count("\n") + 2))
        return f"{file.path} was changed; there it reads now:\n{shown}"

    async def insert(self, command: "BetaMemoryTool20250818InsertCommand") -> str:
        """Put lines behind a line; behind line 0 is the beginning."""
        file = await self._file(command.path)
        lines = file.text.split("\n")
        # A text that ends its last line has no line behind that.
        count = len(lines) - (lines[-1] == "")
        if not 0 <= command.insert_line <= count:
            raise ToolError(f"insert_line is from 0 to {count}, the lines of {file.path}.")
        lines[command.insert_line : command.insert_line] = command.insert_text.removesuffix("\n").split("\n")
        await self._edit(file, "\n".join(lines))
        return f"{file.path} was changed."

    async def delete(self, command: "BetaMemoryTool20250818DeleteCommand") -> str:
        """Delete a file, or a directory with all in it, and every older version."""
        path = _checked(command.path)
        if path == _ROOT:
            raise ToolError(f"{_ROOT} itself cannot be deleted.")
        files = await self._files()
        gone = [files[path]] if path in files else [files[name] for name in _below(path, files)]
        if not gone:
            raise _missing(path)
        for file in gone:
            await self._forget(file)
        still = await self._files()
        if any(file.path in still for file in gone):
            raise ToolError(
                f"{path} was changed by somebody else meanwhile, and is there still. View it, and try again."
            )
        return f"{path} was deleted."

    async def rename(self, command: "BetaMemoryTool20250818RenameCommand") -> str:
        """Give a file or a directory another path, where nothing is yet."""
        old, new = _checked(command.old_path), _checked(command.new_path, is_file=True)
        files = await self._files()
        if old == _ROOT or new.startswith(f"{old}/"):
            raise ToolError(f"{old} cannot be moved into itself.")
        _check_free(new, files)
        moved = [old] if old in files else _below(old, files)
        if not moved:
            raise _missing(old)
        for name in moved:
            file = files[name]
            await self._replace(file, _NoteFile(new + name[len(old) :], file.text, file.id))
        return f"{old} is {new} now."

    async def clear_all_memory(self) -> str:
        """Delete all files and every older version."""
        for file in (await self._files()).values():
            await self._forget(file)
        return "All files were deleted."

    async def _file(self, path: str) -> _NoteFile:
        path = _checked(path, is_file=True)
        found = (await self._files()).get(path)
        if found is None:
            raise _missing(path)
        return found

    async def _files(self) -> dict[str, _NoteFile]:
        """Return all files by their path, in order."""
        try:
            rows = [row async for row in self._esker.memories(project=self._project, tags=[_ALL])]
        except EskerError as error:
            raise _told(error) from error
        files = [_read(row) for row in rows if row.project == self._project]
        return {file.path: file for file in sorted(files, key=lambda file: file.path)}

    async def _edit(self, file: _NoteFile, text: str) -> None:
        _check_size(file.path, text)
        await self._replace(file, _NoteFile(file.path, text, file.id))

    async def _replace(self, old: _NoteFile, new: _NoteFile) -> None:
        try:
            tags = self._tags(new.text)
            await self._esker.correct(old.id, _content(new.path, new.text), tags=tags, external_id=self._name(new.path))
        except (Conflict, NotFound) as error:
            raise ToolError(f"{old.path} was changed by somebody else meanwhile. View it, and try again.") from error
        except EskerError as error:
            raise _told(error) from error

    async def _forget(self, file: _NoteFile) -> None:
        """Forget a file with its older versions, the oldest first: who forgets a row brings back what it replaced."""
        try:
            every = [
                row async for row in self._esker.memories(project=self._project, tags=[_ALL], include_superseded=True)
            ]
            replaced = {row.superseded_by: row.id for row in every if row.superseded_by}
            versions = [file.id]
            while older := replaced.get(versions[-1]):
                versions.append(older)
            for version in reversed(versions):
                await self._forget_row(version)
        except EskerError as error:
            raise _told(error) from error

    async def _forget_row(self, memory_id: str) -> None:
        try:
            await self._esker.forget(memory_id)
        except NotFound:
            return  # with one that says the same

    def _tags(self, text: str) -> list[str]:
        return [_ALL, f"{_ENDS}{len(text) - len(text.rstrip(chr(10)))}"]

    def _name(self, path: str) -> str:
        """Return the external id of a file, which no two live notes share: so no two files have one path."""
        place = f"{self._project or ''}\0{path}"
        return f"{_ALL}:{hashlib.sha256(place.encode()).hexdigest()[:32]}"


def _checked(path: str, *, is_file: bool = False) -> str:
    """Return a path without what says nothing. Raises ToolError for one that is not below /memories."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    inside = path.startswith("/") and parts[:1] == [_ROOT[1:]] and ".." not in parts
    if not inside or _ESCAPED.search(path) or not all(_PART.fullmatch(part) for part in parts):
        raise ToolError(f"{path[:200]!r} is no path below {_ROOT}, such as {_ROOT}/notes.md.")
    if len(path) > _LONGEST_PATH:
        raise ToolError(f"A path has at most {_LONGEST_PATH} characters.")
    if is_file and len(parts) == 1:
        raise ToolError(f"{_ROOT} is a directory.")
    return "/" + "/".join(parts)


def _check_free(path: str, files: Mapping[str, _NoteFile]) -> None:
    if path in files or _below(path, files):
        raise ToolError(f"{path} is there already. Change it with str_replace or insert, or delete it first.")
    if above := next((other for other in files if path.startswith(f"{other}/")), None):
        raise ToolError(f"{above} is a file, so nothing can be in it.")


def _check_size(path: str, text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise ToolError(f"{path} would have {len(text):,} characters; a file has at most {MOST_CHARACTERS:,}.")


def _content(path: str, text: str) -> str:
    return clean_text(f"{path}\n{text}")


def _read(row: SourcedMemory) -> _NoteFile:
    path, _, text = row.content.partition("\n")
    ends = next((int(tag.removeprefix(_ENDS)) for tag in row.tags if tag.startswith(_ENDS)), 0)
    return _NoteFile(path, text.rstrip("\n") + "\n" * ends, row.id)


def _below(path: str, files: Mapping[str, _NoteFile]) -> list[str]:
    return [name for name in files if name.startswith(f"{path}/")]


def _directory(path: str, files: Mapping[str, _NoteFile]) -> str:
    """Return what a directory holds, two levels deep. Raises ToolError when there is none; the root always is."""
    below = _below(path, files)
    if not below and path != _ROOT:
        raise _missing(path)
    shown: dict[str, str] = {}
    for name in below:
        parts = name[len(path) + 1 :].split("/")
        for depth in range(1, min(len(parts), _DEPTH + 1)):
            shown.setdefault("/".join(parts[:depth]) + "/", "")
        if len(parts) <= _DEPTH:
            shown["/".join(parts)] = f" ({counted(len(files[name].text), 'character')})"
    listed = [f"- {path}/{name}{size}" for name, size in sorted(shown.items())]
    return "\n".join([f"{path}, two levels deep:", *(listed or ["(nothing yet)"])])


def _numbered(lines: list[str], first: int, last: int) -> str:
    return "\n".join(f"{number:6d}\t{lines[number - 1]}" for number in range(first, last + 1))


def _missing(path: str) -> ToolError:
    return ToolError(f"There is nothing at {path}. View {_ROOT} to see what there is.")


def _told(error: EskerError) -> ToolError:
    return ToolError(" ".join(filter(None, (str(error), error.hint))))
