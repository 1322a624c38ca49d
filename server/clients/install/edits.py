"""What installing and uninstalling would change: computed whole before anything is written."""

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from server.clients.install import disk
from server.clients.install.client import Client, Part, Place
from server.clients.install.originals import Original, Originals, digest
from server.core.errors import InvalidInput

_BOM = "\ufeff"
_NOTHING_WRITTEN = "Nothing was written. Mend that file, or leave its client out."


@dataclass(frozen=True, slots=True)
class Edit:
    """One file of a client: its bytes now and then (None: no file), and the original to keep of it.

    Without an original to keep, the one that is kept is forgotten.
    """

    client: str
    path: Path
    before: bytes | None
    after: bytes | None
    original: Original | None

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
        """Return the change for people and patch programs."""
        old, new = ("/dev/null" if data is None else str(self.path) for data in (self.before, self.after))
        lines = difflib.unified_diff(_lines(self.before), _lines(self.after), old, new)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def installing(clients: Iterable[Client], place: Place, originals: Originals) -> list[Edit]:
    """Return what installing changes. Raises InvalidInput for a file that cannot be edited."""
    return [
        edit for client in clients for part in client.parts(place) if (edit := _install(client.name, part, originals))
    ]


def uninstalling(clients: Iterable[Client], place: Place, originals: Originals) -> list[Edit]:
    """Return what uninstalling changes. Raises InvalidInput for a file that cannot be edited."""
    return [
        edit for client in clients for part in client.parts(place) if (edit := _uninstall(client.name, part, originals))
    ]


def returning(edits: Iterable[Edit], clients: Iterable[Client], place: Place) -> list[Path]:
    """Return the files that uninstalling makes what they were, and that had something of Esker even then."""
    after = {edit.path: edit.after for edit in edits}
    parts = [part for client in clients for part in client.parts(place)]
    return [part.path for part in parts if (was := after.get(part.path)) and _without_ours(part, was, None) != was]


def _install(client: str, part: Part, originals: Originals) -> Edit | None:
    now = _read(part.path)
    after = _edited(part.path, now, part.put)
    assert after is not None
    if after == now:
        return None
    known = originals.get(part.path)
    before, folders = now, ()
    if known:
        before, folders = _without_ours(part, now, known), known.folders
    return Edit(client, part.path, now, after, Original(client, part.path, before, digest(after), folders))


def _uninstall(client: str, part: Part, originals: Originals) -> Edit | None:
    now = _read(part.path)
    known = originals.get(part.path)
    after = _without_ours(part, now, known)
    return Edit(client, part.path, now, after, None) if known or after != now else None


def _without_ours(part: Part, now: bytes | None, known: Original | None) -> bytes | None:
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
    return None if changed is None else (mark + changed).encode()


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: byte {error.start} is no UTF-8.", hint=_NOTHING_WRITTEN) from error


def _lines(data: bytes | None) -> list[str]:
    # Lines end where an editor ends them, not at every separator that Unicode has.
    return list(StringIO((data or b"").decode("utf-8", "replace"), newline="\n"))
