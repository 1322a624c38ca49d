"""What installing and uninstalling would change: computed whole before anything is written."""

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
_NOTHING_WRITTEN = "Nothing was written. Mend that file, or leave its client out."


@dataclass(frozen=True, slots=True)
class Edit:
    """One file of a client: its bytes now and then (None: no file), and the original to keep of it.

    Without an original to keep, the one that is kept is forgotten. `aside_of` is the file that this one is a copy of,
    because somebody has edited it and it is to be replaced or deleted.
    """

    client: str
    path: Path
    before: bytes | None
    after: bytes | None
    original: Original | None
    aside_of: Path | None = None

    @property
    def target(self) -> str:
        """The file itself, behind links."""
        return os.path.realpath(self.path)

    @property
    def changes(self) -> bool:
        """Whether the file itself changes."""
        return self.before != self.after

    @property
    def kind(self) -> str:
        """What happens to the file, in a word."""
        if not self.changes:
            return "keep"
        return "create" if self.before is None else "delete" if self.after is None else "edit"

    def diff(self) -> str:
        """Return the change for patch programs."""
        return self._diff(_decoded(self.before), _decoded(self.after))

    def spread(self) -> str | None:
        """Return the change of a JSON file as if each value were on a line of its own, or None for other files."""
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


def installing(clients: Iterable[Client], place: InstallTarget, originals: Originals) -> list[Edit]:
    """Return what installing changes. Raises InvalidInput for a file that cannot be edited."""
    chosen = list(clients)
    edits = _edits(chosen, place, originals, _install)
    for part in (part for client in chosen for part in client.parts(place)):
        there = [edit for edit in edits if edit.target == os.path.realpath(part.path)]
        if there and there[-1].path != part.path:
            _agree(part, there[-1])
    return edits


def uninstalling(clients: Iterable[Client], place: InstallTarget, originals: Originals) -> list[Edit]:
    """Return what uninstalling changes. Raises InvalidInput for a file that cannot be edited."""
    return _edits(clients, place, originals, _uninstall)


def returning(edits: Iterable[Edit], clients: Iterable[Client], place: InstallTarget) -> list[Path]:
    """Return the files that uninstalling makes what they were, and that had something of Esker even then."""
    after = {edit.path: edit.after for edit in edits}
    parts = [part for client in clients for part in client.parts(place)]
    return [part.path for part in parts if (was := after.get(part.path)) and _without_ours(part, was, None) != was]


def _edits(
    clients: Iterable[Client],
    place: InstallTarget,
    originals: Originals,
    change: Callable[[str, ManagedFile, bytes | None, Original | None], Edit | None],
) -> list[Edit]:
    edits: list[Edit] = []
    # By links, several clients may have one file: what the first makes of it is what the next one finds.
    pending: dict[str, bytes | None] = {}
    for client, part in [(each.name, part) for each in clients for part in each.parts(place)]:
        target = os.path.realpath(part.path)
        now = pending[target] if target in pending else _read(part.path)
        known = originals.get(part.path)
        if edit := change(client, part, now, known):
            pending[target] = edit.after
            edits += [_aside(edit), edit] if _loses(edit, part, known) else [edit]
    return edits


def _agree(part: ManagedFile, last: Edit) -> None:
    """Refuse to make of one file what two clients want of it, when the later one undoes what the earlier one did."""
    if _edited(part.path, last.after, part.put) != last.after:
        raise InvalidInput(
            f"{part.path} and {last.path} are one file, and {last.client} wants another entry in there.",
            hint="Nothing was written. Set one of these clients up, or give each a file of its own.",
        )


def _loses(edit: Edit, part: ManagedFile, known: Original | None) -> bool:
    """Return whether an edit takes away a file of ours as somebody has edited it, and it is kept nowhere."""
    if not (part.whole and edit.changes and edit.before):
        return False
    kept = edit.original.before if edit.original else None
    return edit.before != kept and digest(edit.before) != (known.written if known else digest(part.put("").encode()))


def _aside(edit: Edit) -> Edit:
    """Return the edit that keeps a file as it is, under a name that its client does not load."""
    names = chain([_EDITED], (f"{_EDITED}-{number}" for number in count(2)))
    paths = (edit.path.with_name(edit.path.name + name) for name in names)
    return Edit(
        edit.client, next(path for path in paths if not os.path.lexists(path)), None, edit.before, None, edit.path
    )


def _install(client: str, part: ManagedFile, now: bytes | None, known: Original | None) -> Edit | None:
    after = _edited(part.path, now, part.put)
    assert after is not None
    if after == now:
        return None
    before, folders = now, ()
    if known:
        before, folders = _without_ours(part, now, known), known.folders
    return Edit(client, part.path, now, after, Original(client, part.path, before, digest(after), folders))


def _uninstall(client: str, part: ManagedFile, now: bytes | None, known: Original | None) -> Edit | None:
    after = _without_ours(part, now, known)
    return Edit(client, part.path, now, after, None) if known or after != now else None


def _without_ours(part: ManagedFile, now: bytes | None, known: Original | None) -> bytes | None:
    """Return a file without what is ours: its original, or what it is now without that."""
    if now is None:
        return None
    if known and digest(now) == known.written:
        return known.before
    original = "" if known is None else None if known.before is None else _text(part.path, known.before)
    original = original and original.removeprefix(_BOM)
    return _edited(part.path, now, lambda text: part.take(text, original))


def _read(path: Path) -> bytes | None:
    try:
        return disk.read(path)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.", hint=_NOTHING_WRITTEN) from error


def _edited(path: Path, data: bytes | None, edit: Callable[[str], str | None]) -> bytes | None:
    """Return a file's bytes with its text edited; a byte order mark stays."""
    text = "" if data is None else _text(path, data)
    mark = _BOM if text.startswith(_BOM) else ""
    try:
        changed = edit(text.removeprefix(_BOM))
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}.", hint=_NOTHING_WRITTEN) from error
    except RecursionError as error:
        raise InvalidInput(f"{path}: it is nested too deep to be read.", hint=_NOTHING_WRITTEN) from error
    return None if changed is None else (mark + changed).encode()


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: byte {error.start} is no UTF-8.", hint=_NOTHING_WRITTEN) from error


def _decoded(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace")


def _lines(text: str) -> list[str]:
    # Lines end where an editor ends them, not at every separator that Unicode has.
    return list(StringIO(text, newline="\n"))
