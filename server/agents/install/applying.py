"""Writing edits: all of them, or none."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from esker.server.agents.install import disk
from esker.server.agents.install.edits import Edit
from esker.server.agents.install.originals import Original, Originals
from esker.server.core.errors import Conflict, Unavailable

# Modes of new files: those in a home may contain keys later, those in a project are shared.
_PRIVATE, _SHARED = 0o600, 0o666


def apply(edits: Sequence[Edit], originals: Originals, *, shared: bool = False) -> None:
    """Write edits. New files are owner-only unless `shared`.

    Raises Conflict if a file has changed since the edits were computed, and Unavailable if one cannot be written; in
    both cases everything is rolled back.
    """
    mode = _SHARED if shared else _PRIVATE
    stored = {edit.path: originals.get(edit.path) for edit in edits}
    begun: list[Edit] = []
    try:
        for edit in {edit.target: edit for edit in reversed(edits)}.values():
            _check(edit)
        for edit in _ordered(edits):
            begun.append(edit)
            _check(edit)
            _apply(edit, originals, stored[edit.path], mode)
    except (OSError, Conflict) as error:
        _undo(begun, originals, stored, mode)
        if isinstance(error, Conflict):
            raise
        path = error.filename or begun[-1].path
        raise Unavailable(f"{path} cannot be written: {error.strerror}. Nothing was changed.") from error


def _ordered(edits: Sequence[Edit]) -> list[Edit]:
    """Return the edits in order: deletions come last and in reverse, since folders are removed with their files."""
    kept, deleted = ([edit for edit in edits if (edit.after is None) == deletes] for deletes in (False, True))
    return [*kept, *reversed(deleted)]


def _check(edit: Edit) -> None:
    if disk.read(edit.path) != edit.before:
        raise Conflict(f"{edit.path} has changed meanwhile; nothing was written.", hint="Run the command again.")


def _apply(edit: Edit, originals: Originals, stored: Original | None, mode: int) -> None:
    # Store the original before changing the file, so that it survives any failure.
    if edit.original:
        originals.keep(edit.original)
    if edit.after is None:
        disk.delete(edit.path, stored.folders if stored else ())
    elif edit.changes:
        folders = disk.write(edit.path, edit.after, mode)
        if edit.original and folders:
            originals.keep(replace(edit.original, folders=folders))
    if not edit.original:
        originals.forget(edit.path)


def _undo(begun: Sequence[Edit], originals: Originals, stored: dict[Path, Original | None], mode: int) -> None:
    for edit in reversed(begun):
        # A file that cannot be restored must not prevent the others from being restored.
        with suppress(OSError):
            _undo_one(edit, originals, stored[edit.path], mode)


def _undo_one(edit: Edit, originals: Originals, stored: Original | None, mode: int) -> None:
    kept = originals.get(edit.path)
    # Leave a file alone that another program has changed meanwhile.
    if edit.changes and disk.read(edit.path) == edit.after:
        if edit.before is None:
            disk.delete(edit.path, kept.folders if kept else ())
        else:
            disk.write(edit.path, edit.before, mode)
    if stored:
        originals.keep(stored)
    else:
        originals.forget(edit.path)
