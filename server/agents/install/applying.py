"""Writing edits: all of them, or none."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from esker.server.agents.install import disk
from esker.server.agents.install.edits import Edit
from esker.server.agents.install.originals import Original, Originals
from esker.server.core.errors import Conflict, Unavailable

# What lies in a home may come to hold keys; what lies in a project is everybody's.
_PRIVATE, _SHARED = 0o600, 0o666


def apply(edits: Sequence[Edit], originals: Originals, *, shared: bool = False) -> None:
    """Write edits. New files are their owner's alone unless they are `shared`.

    Raises Conflict when a file has changed since the edits were computed, and Unavailable when one cannot be written;
    then everything is as it was.
    """
    mode = _SHARED if shared else _PRIVATE
    known = {edit.path: originals.get(edit.path) for edit in edits}
    begun: list[Edit] = []
    try:
        for edit in {edit.target: edit for edit in reversed(edits)}.values():
            _check(edit)
        for edit in _ordered(edits):
            begun.append(edit)
            _check(edit)
            _apply(edit, originals, known[edit.path], mode)
    except (OSError, Conflict) as error:
        _undo(begun, originals, known, mode)
        if isinstance(error, Conflict):
            raise
        place = error.filename or begun[-1].path
        raise Unavailable(f"{place} cannot be written: {error.strerror}. Nothing was changed.") from error


def _ordered(edits: Sequence[Edit]) -> list[Edit]:
    """Return the edits in the order to make them: files that were made first go last, as the folders go with them."""
    lasting, going = ([edit for edit in edits if (edit.after is None) == goes] for goes in (False, True))
    return [*lasting, *reversed(going)]


def _check(edit: Edit) -> None:
    if disk.read(edit.path) != edit.before:
        raise Conflict(f"{edit.path} was changed meanwhile; nothing was written.", hint="Run the command again.")


def _apply(edit: Edit, originals: Originals, known: Original | None, mode: int) -> None:
    # The original is kept before the file changes, so that it is there however this ends.
    if edit.original:
        originals.keep(edit.original)
    if edit.after is None:
        disk.delete(edit.path, known.folders if known else ())
    elif edit.changes:
        folders = disk.write(edit.path, edit.after, mode)
        if edit.original and folders:
            originals.keep(replace(edit.original, folders=folders))
    if not edit.original:
        originals.forget(edit.path)


def _undo(begun: Sequence[Edit], originals: Originals, known: dict[Path, Original | None], mode: int) -> None:
    for edit in reversed(begun):
        # One file that cannot be brought back must not keep the others from it.
        with suppress(OSError):
            _undo_one(edit, originals, known[edit.path], mode)


def _undo_one(edit: Edit, originals: Originals, known: Original | None, mode: int) -> None:
    kept = originals.get(edit.path)
    # What somebody else has made of a file meanwhile is theirs.
    if edit.changes and disk.read(edit.path) == edit.after:
        if edit.before is None:
            disk.delete(edit.path, kept.folders if kept else ())
        else:
            disk.write(edit.path, edit.before, mode)
    if known:
        originals.keep(known)
    else:
        originals.forget(edit.path)
