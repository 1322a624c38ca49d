"""Anthropic's memory tool (memory_20250818) with its files stored in Esker, where recall finds them.

A file is a note, and its external id is a hash of its path. The first line of the note is the path, so that it can be
searched for. A note does not keep the line ends at the end of a text, so a tag has their number. An edit replaces the
note, so older versions are kept as superseded; deleting forgets all of them.
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
"""Maximum length of a file."""
_ROOT = "/memories"
_FILE_TAG = "memory-file"
_LONGEST_PATH = 400
_PART = re.compile(r"[^/\\\x00-\x1f\x7f]+")
_ESCAPED = re.compile(r"%(?:2e|2f|5c|00)", re.IGNORECASE)
_LINE_ENDS_TAG = "line-ends:"
_DEPTH = 2


@dataclass(frozen=True, slots=True)
class _NoteFile:
    """A file with the id of its note, which identifies the version."""

    path: str
    text: str
    id: str


class EskerMemoryTool(BetaAsyncAbstractMemoryTool):
    """The memory tool for `client.beta.messages.tool_runner`; files belong to one project, or to the whole pool."""

    def __init__(self, esker: "Esker", project: str | None = None) -> None:
        super().__init__()
        self._esker = esker
        self._project = project

    async def view(self, command: "BetaMemoryTool20250818ViewCommand") -> str:
        """Show a file with its line numbers, or list a directory."""
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
                raise ToolError(f"{path} has {counted(len(lines), 'line')}; lines {first} to {last} do not exist.")
        return f"{path}, with line numbers:\n" + _numbered(lines, first, last)

    async def create(self, command: "BetaMemoryTool20250818CreateCommand") -> str:
        """Create a file that does not exist yet."""
        path = _checked(command.path, is_file=True)
        files = await self._files()
        _check_free(path, files)
        _check_size(path, command.file_text)
        try:
            await self._esker.remember(
                _content(path, command.file_text),
                project=self._project,
                tags=self._tags(command.file_text),
                external_id=self._external_id(path),
            )
        except Conflict as error:
            raise ToolError(f"Another client has created {path} meanwhile. View it.") from error
        except EskerError as error:
            raise _tool_error(error) from error
        return f"{path} was created."

    async def str_replace(self, command: "BetaMemoryTool20250818StrReplaceCommand") -> str:
        """Replace a text that occurs exactly once in a file."""
        file = await self._file(command.path)
        count = file.text.count(command.old_str) if command.old_str else 0
        if count != 1:
            reason = (
                f"occurs {count} times in {file.path}; add the text around it" if count else f"is not in {file.path}"
            )
            raise ToolError(f"Nothing was replaced: {command.old_str!r} {reason}.")
        start = file.text.index(command.old_str)
        new = command.new_str or ""
        text = file.text[:start] + new + file.text[start + len(command.old_str) :]
        await self._edit(file, text)
        line = text.count("\n", 0, start) + 1
        lines = text.split("\n")
        shown = _numbered(lines, max(1, line - 2), min(len(lines), line + new.count("\n") + 2))
        return f"{file.path} was changed; the lines now read:\n{shown}"

    async def insert(self, command: "BetaMemoryTool20250818InsertCommand") -> str:
        """Insert lines after a line; after line 0 is the beginning."""
        file = await self._file(command.path)
        lines = file.text.split("\n")
        # A trailing line end does not start another line.
        count = len(lines) - (lines[-1] == "")
        if not 0 <= command.insert_line <= count:
            raise ToolError(f"insert_line must be between 0 and {count}, the number of lines of {file.path}.")
        lines[command.insert_line : command.insert_line] = command.insert_text.removesuffix("\n").split("\n")
        await self._edit(file, "\n".join(lines))
        return f"{file.path} was changed."

    async def delete(self, command: "BetaMemoryTool20250818DeleteCommand") -> str:
        """Delete a file, or a directory with everything in it, and all older versions."""
        path = _checked(command.path)
        if path == _ROOT:
            raise ToolError(f"{_ROOT} itself cannot be deleted.")
        files = await self._files()
        deleted = [files[path]] if path in files else [files[name] for name in _below(path, files)]
        if not deleted:
            raise _missing(path)
        for file in deleted:
            await self._forget(file)
        remaining = await self._files()
        if any(file.path in remaining for file in deleted):
            raise ToolError(f"{path} still exists: another client has changed it meanwhile. View it and try again.")
        return f"{path} was deleted."

    async def rename(self, command: "BetaMemoryTool20250818RenameCommand") -> str:
        """Move a file or a directory to a path that does not exist yet."""
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
        return f"{old} was renamed to {new}."

    async def clear_all_memory(self) -> str:
        """Delete all files and all older versions."""
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
        """Return all files by path, in order."""
        try:
            rows = [row async for row in self._esker.memories(project=self._project, tags=[_FILE_TAG])]
        except EskerError as error:
            raise _tool_error(error) from error
        files = [_read(row) for row in rows if row.project == self._project]
        return {file.path: file for file in sorted(files, key=lambda file: file.path)}

    async def _edit(self, file: _NoteFile, text: str) -> None:
        _check_size(file.path, text)
        await self._replace(file, _NoteFile(file.path, text, file.id))

    async def _replace(self, old: _NoteFile, new: _NoteFile) -> None:
        try:
            tags = self._tags(new.text)
            await self._esker.correct(
                old.id, _content(new.path, new.text), tags=tags, external_id=self._external_id(new.path)
            )
        except (Conflict, NotFound) as error:
            raise ToolError(f"Another client has changed {old.path} meanwhile. View it and try again.") from error
        except EskerError as error:
            raise _tool_error(error) from error

    async def _forget(self, file: _NoteFile) -> None:
        """Forget a file and its older versions, the oldest first, as forgetting a row restores the one it replaced."""
        try:
            every = [
                row
                async for row in self._esker.memories(project=self._project, tags=[_FILE_TAG], include_superseded=True)
            ]
            replaced = {row.superseded_by: row.id for row in every if row.superseded_by}
            versions = [file.id]
            while older := replaced.get(versions[-1]):
                versions.append(older)
            for version in reversed(versions):
                await self._forget_row(version)
        except EskerError as error:
            raise _tool_error(error) from error

    async def _forget_row(self, memory_id: str) -> None:
        try:
            # A file with the same words in another project is another file.
            await self._esker.forget(memory_id, echoes=False)
        except NotFound:
            return  # already forgotten with another note of the same words

    def _tags(self, text: str) -> list[str]:
        return [_FILE_TAG, f"{_LINE_ENDS_TAG}{len(text) - len(text.rstrip(chr(10)))}"]

    def _external_id(self, path: str) -> str:
        """Return the external id of a file; since ids of live notes are unique, no two files have the same path."""
        start = f"{self._project or ''}\0{path}"
        return f"{_FILE_TAG}:{hashlib.sha256(start.encode()).hexdigest()[:32]}"


def _checked(path: str, *, is_file: bool = False) -> str:
    """Return a path without empty parts and dots. Raises ToolError for one that is not below /memories."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    inside = path.startswith("/") and parts[:1] == [_ROOT[1:]] and ".." not in parts
    if not inside or _ESCAPED.search(path) or not all(_PART.fullmatch(part) for part in parts):
        raise ToolError(f"{path[:200]!r} is not a path below {_ROOT}, such as {_ROOT}/notes.md.")
    if len(path) > _LONGEST_PATH:
        raise ToolError(f"A path must have at most {_LONGEST_PATH} characters.")
    if is_file and len(parts) == 1:
        raise ToolError(f"{_ROOT} is a directory.")
    return "/" + "/".join(parts)


def _check_free(path: str, files: Mapping[str, _NoteFile]) -> None:
    if path in files or _below(path, files):
        raise ToolError(f"{path} already exists. Change it with str_replace or insert, or delete it first.")
    if above := next((other for other in files if path.startswith(f"{other}/")), None):
        raise ToolError(f"{above} is a file, so it cannot contain other files.")


def _check_size(path: str, text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise ToolError(f"{path} would have {len(text):,} characters; a file must have at most {MOST_CHARACTERS:,}.")


def _content(path: str, text: str) -> str:
    return clean_text(f"{path}\n{text}")


def _read(row: SourcedMemory) -> _NoteFile:
    path, _, text = row.content.partition("\n")
    line_ends = next((int(tag.removeprefix(_LINE_ENDS_TAG)) for tag in row.tags if tag.startswith(_LINE_ENDS_TAG)), 0)
    return _NoteFile(path, text.rstrip("\n") + "\n" * line_ends, row.id)


def _below(path: str, files: Mapping[str, _NoteFile]) -> list[str]:
    return [name for name in files if name.startswith(f"{path}/")]


def _directory(path: str, files: Mapping[str, _NoteFile]) -> str:
    """Return the files of a directory, two levels deep. Raises ToolError if it does not exist; the root always does."""
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
    return "\n".join([f"{path}, two levels deep:", *(listed or ["(empty)"])])


def _numbered(lines: list[str], first: int, last: int) -> str:
    return "\n".join(f"{number:6d}\t{lines[number - 1]}" for number in range(first, last + 1))


def _missing(path: str) -> ToolError:
    return ToolError(f"{path} does not exist. View {_ROOT} to list all files.")


def _tool_error(error: EskerError) -> ToolError:
    return ToolError(" ".join(filter(None, (str(error), error.hint))))
