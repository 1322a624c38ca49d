"""The new files of a sync, once the pool has taken the changes, and the state that the next sync compares with."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import count

from esker.server.core.pool.sync_document import Document, Edits, Head, empty, files_by_head
from esker.server.core.pool.sync_merge import Copy
from esker.server.core.pool.sync_names import path_of
from esker.server.core.pool.sync_plan import BaseRow, NewBullet, PoolRow, SyncPlan, SyncStep


@dataclass(slots=True)
class FolderEdits:
    """Edits of each file by its path, the files that are new, and what the next sync compares with.

    `taken`: lower-case paths where no new file may be.
    """

    pool: str
    documents: dict[str, Document]
    taken: Collection[str] = ()
    base: dict[str, BaseRow] = field(default_factory=dict[str, BaseRow])
    edits: dict[str, Edits] = field(default_factory=dict[str, Edits])

    def note(self, row: PoolRow, path: str) -> None:
        """Note that a file and the pool agree on a memory."""
        self.base[row.id] = BaseRow(row.line.key, path, row.project, row.kind)

    def of(self, path: str) -> Edits:
        """Return the edits of a file."""
        return self.edits.setdefault(path, Edits())

    def add(self, row: PoolRow) -> None:
        """Add a memory to the file of its project and kind."""
        head = Head(self.pool, row.project, row.kind)
        path = files_by_head(self.documents).get(head)
        if path is None:
            path = _free(path_of(row.project, row.kind), {*self.taken, *map(str.lower, self.documents)})
            self.documents[path] = empty(head)
        self.of(path).added.append((row.id, row.line))
        self.note(row, path)

    def remove(self, bullet: Copy) -> None:
        """Remove a bullet."""
        self.of(bullet.path).bullets[bullet.place] = None

    def put(self, row: PoolRow, bullet: Copy) -> None:
        """Let a bullet show a row, or move it to the file of its kind."""
        head = self.documents[bullet.path].head
        if head != Head(self.pool, row.project, row.kind):
            self.remove(bullet)
            self.add(row)
            return
        self.of(bullet.path).bullets[bullet.place] = (row.id, row.line)
        self.note(row, bullet.path)


def folder_edits(
    pool: str,
    documents: Mapping[str, Document],
    plan: SyncPlan,
    base: Mapping[str, BaseRow],
    outcomes: "SyncOutcomes",
    taken: Collection[str] = (),
) -> FolderEdits:
    """Return the edits of the files. A change that the pool refused, and a memory that is held, stay as they are."""
    folder = FolderEdits(pool, dict(documents), taken)
    for memory_id in plan.held & base.keys():
        folder.base[memory_id] = base[memory_id]
    in_bullets = {step.id for step in plan.steps if step.bullet is not None}
    placed: set[str] = set()
    for bullet, row in outcomes.written:
        # A new note may say the same as an existing line.
        folder.remove(bullet.copy) if row.id in placed | in_bullets else folder.put(row, bullet.copy)
        placed.add(row.id)
    for step in plan.steps:
        _apply(folder, step, base, outcomes, in_bullets, placed)
    return folder


def _free(path: str, taken: Collection[str]) -> str:
    """Return a path for a new file; another file may occupy the usual path, or that of its folder."""
    folder, _, name = path.partition("/")
    folder = next(each for n in count(1) if (each := _numbered(folder, n)) not in taken)
    stem = name.removesuffix(".md")
    return next(each for n in count(1) if (each := f"{folder}/{_numbered(stem, n)}.md") not in taken)


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}-{number}"


@dataclass(slots=True)
class SyncOutcomes:
    """The pool's answers: the rows of new notes and of corrected memories, the ids of forgotten and kept ones."""

    written: list[tuple[NewBullet, PoolRow]] = field(default_factory=list["tuple[NewBullet, PoolRow]"])
    corrected: dict[str, PoolRow] = field(default_factory=dict[str, PoolRow])
    forgotten: set[str] = field(default_factory=set[str])
    restored: bool = False
    """Whether lines that were deleted are written again."""


def _apply(
    folder: FolderEdits,
    step: SyncStep,
    base: Mapping[str, BaseRow],
    outcomes: SyncOutcomes,
    in_bullets: set[str],
    placed: set[str],
) -> None:
    bullet, name = step.bullet, step.decision.step
    if name == "forget":
        if step.id not in placed:
            _apply_deleted(folder, step, base[step.id], outcomes)
        return
    if name == "correct" and step.id not in outcomes.corrected:
        if step.id in base:
            folder.base[step.id] = base[step.id]
        return
    row = outcomes.corrected.get(step.id, step.row)
    if name == "keep" and bullet is not None and row is not None and _is_in_place(folder, row, step.id, bullet):
        folder.note(row, bullet.path)
        return
    for repeat in step.repeats:
        folder.remove(repeat)
    if row is not None and (row.id in placed or (row.id != step.id and row.id in in_bullets)):
        row = None  # it has a bullet already
    if row is not None:
        placed.add(row.id)
    _show_row(folder, row, bullet)
    if name == "conflict" and bullet is not None:
        folder.of(bullet.path).conflicts[bullet.place] = bullet.line


def _is_in_place(folder: FolderEdits, row: PoolRow, memory_id: str, bullet: Copy) -> bool:
    """Whether a bullet names a row as it is; a person may keep one of another kind in a file."""
    head = folder.documents[bullet.path].head
    return row.id == memory_id and head is not None and head.project == row.project


def _show_row(folder: FolderEdits, row: PoolRow | None, bullet: Copy | None) -> None:
    if row is None:
        if bullet is not None:
            folder.remove(bullet)
    elif bullet is None:
        folder.add(row)
    else:
        folder.put(row, bullet)


def _apply_deleted(folder: FolderEdits, step: SyncStep, was: BaseRow, outcomes: SyncOutcomes) -> None:
    if step.id in outcomes.forgotten:
        return
    if outcomes.restored and step.row is not None:
        folder.add(step.row)
    else:
        folder.base[step.id] = BaseRow(was.key, was.path, was.project, was.kind, held=True)
