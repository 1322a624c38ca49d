"""The edits of installing and uninstalling, all computed before anything is written."""

import difflib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import StringIO
from itertools import chain, count
from pathlib import Path

from esker.server.agents.install import disk
from esker.server.agents.install.client import Client, InstallTarget, ManagedFile
from esker.server.agents.install.originals import Original, Originals, digest
from esker.server.agents.json_text import NotJson, spread
from esker.server.core.errors import InvalidInput

_BOM = "\ufeff"
_EDITED = ".edited"
_NOTHING_WRITTEN = "Nothing was written. Correct that file, or leave its client out."


@dataclass(frozen=True, slots=True)
class Edit:
    """The change of one file of a client: its bytes before and after (None: no file), and the original to store.

    With None, a stored original is removed. `copy_of`: the file that this one is a copy of, because the user has edited
    it and it will be replaced or deleted.
    """

    client: str
    path: Path
    before: bytes | None
    after: bytes | None
    original: Original | None
    copy_of: Path | None = None

    @property
    def target(self) -> str:
        """The file itself, with links resolved."""
        return os.path.realpath(self.path)

    @property
    def changes(self) -> bool:
        """Whether the file itself changes."""
        return self.before != self.after

    @property
    def kind(self) -> str:
        """The kind of change: create, edit, delete or keep."""
        if not self.changes:
            return "keep"
        return "create" if self.before is None else "delete" if self.after is None else "edit"

    def diff(self) -> str:
        """Return the change as a unified diff."""
        return self._diff(_decoded(self.before), _decoded(self.after))

    def spread(self) -> str | None:
        """Return the diff of a JSON file with each value on a line of its own, or None for other files."""
        try:
            return self._diff(*(text and spread(text.removeprefix(_BOM)) for text in map(_decoded, self._sides)))
        except NotJson:
            return None

    @property
    def _sides(self) -> tuple[bytes | None, bytes | None]:
        return self.before, self.after

    def _diff(self, before: str, after: str) -> str:
        old, new = ("/dev/null" if data is None else str(self.path) for data in self._sides)
        lines = difflib.unified_diff(_lines(before), _lines(after), old, new)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def edits_to_install(clients: Iterable[Client], target: InstallTarget, originals: Originals) -> list[Edit]:
    """Return the edits of an installation. Raises InvalidInput for a file that cannot be edited."""
    chosen = list(clients)
    edits = _edits(chosen, target, originals, _install)
    for part in (part for client in chosen for part in client.parts(target)):
        same = [edit for edit in edits if edit.target == os.path.realpath(part.path)]
        if same and same[-1].path != part.path:
            _check_shared_file(part, same[-1])
    return edits


def edits_to_uninstall(clients: Iterable[Client], target: InstallTarget, originals: Originals) -> list[Edit]:
    """Return the edits of an uninstallation. Raises InvalidInput for a file that cannot be edited."""
    return _edits(clients, target, originals, _uninstall)


def restored_with_entries(edits: Iterable[Edit], clients: Iterable[Client], target: InstallTarget) -> list[Path]:
    """Return the files that uninstalling restores to an original that itself had entries of Esker."""
    after = {edit.path: edit.after for edit in edits}
    parts = [part for client in clients for part in client.parts(target)]
    return [
        part.path
        for part in parts
        if (restored := after.get(part.path)) and _without_entries(part, restored, None) != restored
    ]


def _edits(
    clients: Iterable[Client],
    target: InstallTarget,
    originals: Originals,
    change: Callable[[str, ManagedFile, bytes | None, Original | None], Edit | None],
) -> list[Edit]:
    edits: list[Edit] = []
    # Through links, several clients may share a file: the next client starts from the result of the one before.
    pending: dict[str, bytes | None] = {}
    for client, part in [(each.name, part) for each in clients for part in each.parts(target)]:
        real = os.path.realpath(part.path)
        now = pending[real] if real in pending else _read(part.path)
        stored = originals.get(part.path)
        if edit := change(client, part, now, stored):
            pending[real] = edit.after
            edits += [_copy(edit), edit] if _loses_user_edits(edit, part, stored) else [edit]
    return edits


def _check_shared_file(part: ManagedFile, last: Edit) -> None:
    """Raise InvalidInput if two clients share a file and the later one's entries replace the earlier one's."""
    if _edited(part.path, last.after, part.put) != last.after:
        raise InvalidInput(
            f"{part.path} and {last.path} are the same file, but {last.client} needs a different entry in it.",
            hint="Nothing was written. Set one of these clients up, or give each a file of its own.",
        )


def _loses_user_edits(edit: Edit, part: ManagedFile, stored: Original | None) -> bool:
    """Return whether an edit would lose the user's changes to a file that Esker owns."""
    if not (part.whole and edit.changes and edit.before):
        return False
    stored_bytes = edit.original.before if edit.original else None
    return edit.before != stored_bytes and digest(edit.before) != (
        stored.written if stored else digest(part.put("").encode())
    )


def _copy(edit: Edit) -> Edit:
    """Return the edit that copies a file to a name that its client does not load."""
    names = chain([_EDITED], (f"{_EDITED}-{number}" for number in count(2)))
    paths = (edit.path.with_name(edit.path.name + name) for name in names)
    return Edit(
        edit.client, next(path for path in paths if not os.path.lexists(path)), None, edit.before, None, edit.path
    )


def _install(client: str, part: ManagedFile, now: bytes | None, stored: Original | None) -> Edit | None:
    after = _edited(part.path, now, part.put)
    assert after is not None
    if after == now:
        return None
    before, folders = now, ()
    if stored:
        before, folders = _without_entries(part, now, stored), stored.folders
    return Edit(client, part.path, now, after, Original(client, part.path, before, digest(after), folders))


def _uninstall(client: str, part: ManagedFile, now: bytes | None, stored: Original | None) -> Edit | None:
    after = _without_entries(part, now, stored)
    return Edit(client, part.path, now, after, None) if stored or after != now else None


def _without_entries(part: ManagedFile, now: bytes | None, stored: Original | None) -> bytes | None:
    """Return a file without Esker's entries: its original, or if it was edited since, its present text without them."""
    if now is None:
        return None
    if stored and digest(now) == stored.written:
        return stored.before
    original = "" if stored is None else None if stored.before is None else _text(part.path, stored.before)
    original = original and original.removeprefix(_BOM)
    return _edited(part.path, now, lambda text: part.remove(text, original))


def _read(path: Path) -> bytes | None:
    try:
        return disk.read(path)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.", hint=_NOTHING_WRITTEN) from error


def _edited(path: Path, data: bytes | None, edit: Callable[[str], str | None]) -> bytes | None:
    """Return a file's bytes with the text edited; a byte order mark is preserved."""
    text = "" if data is None else _text(path, data)
    mark = _BOM if text.startswith(_BOM) else ""
    try:
        changed = edit(text.removeprefix(_BOM))
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}.", hint=_NOTHING_WRITTEN) from error
    except RecursionError as error:
        raise InvalidInput(f"{path}: it is nested too deeply.", hint=_NOTHING_WRITTEN) from error
    return None if changed is None else (mark + changed).encode()


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: byte {error.start} is not UTF-8.", hint=_NOTHING_WRITTEN) from error


def _decoded(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace")


def _lines(text: str) -> list[str]:
    # Split at line feeds as editors do, not at every separator of Unicode.
    return list(StringIO(text, newline="\n"))
