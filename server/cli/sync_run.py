"""One sync of a folder: plan, send, write the files, and note what they have."""

import sys
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import typer

from esker.server.agents.api import Api
from esker.server.cli.output import say
from esker.server.cli.sync_files import ReadFolder, read_folder, write_files
from esker.server.cli.sync_pool import (
    MOST_IDS,
    SyncScope,
    check_pool,
    lines_kept,
    live_rows,
    rows_now,
    send,
    with_versions,
    without_kept,
)
from esker.server.cli.sync_state import SyncState
from esker.server.core.counts import counted
from esker.server.core.errors import Conflict
from esker.server.core.pool.sync_document import Document
from esker.server.core.pool.sync_edits import SyncOutcomes, folder_edits
from esker.server.core.pool.sync_plan import (
    FoundBullets,
    SyncPlan,
    SyncProblem,
    SyncStep,
    find_bullets,
    needs_consent,
    plan_sync,
)


@dataclass(slots=True)
class SyncReport:
    """The report of a sync, or with `check` of one that would be made: ids of memories, and words of new ones."""

    folder: str
    check: bool
    written: list[str] = field(default_factory=list[str])
    corrected: list[str] = field(default_factory=list[str])
    forgotten: list[str] = field(default_factory=list[str])
    not_forgotten: list[str] = field(default_factory=list[str])
    taken: list[str] = field(default_factory=list[str])
    dropped: list[str] = field(default_factory=list[str])
    conflicts: list[str] = field(default_factory=list[str])
    unresolved: dict[str, int] = field(default_factory=dict[str, int])
    problems: list[SyncProblem] = field(default_factory=list[SyncProblem])
    files: list[str] = field(default_factory=list[str])

    @property
    def needs_attention(self) -> bool:
        """Whether a person has to do something."""
        return bool(self.not_forgotten or self.conflicts or self.unresolved or self.problems)


class Sync:
    """One sync, whose folder is locked."""

    def __init__(self, api: Api, folder: Path, scope: SyncScope, state: SyncState, check: bool) -> None:
        self._api, self._folder, self._scope, self._state = api, folder, scope, state
        self._report = SyncReport(str(folder), check)
        everything = state.read()
        self._base = {i: row for i, row in everything.items() if scope.has(row.project)}
        self._others = {i: row for i, row in everything.items() if i not in self._base}

    def run(self, *, delete: bool, restore: bool, ask: bool) -> SyncReport:
        """Plan, send, write the files, and only then note what they have: killed anywhere, it is safe to repeat."""
        read = read_folder(self._folder)
        documents = self._own(read)
        found = self._found(read, documents)
        plan = self._plan(documents, found)
        forgotten = plan.with_step("forget")
        if not restore and not self._report.check and not delete and needs_consent(forgotten, self._base, documents):
            delete = ask and self._consent(forgotten)
            if not delete:
                self._report.not_forgotten = [step.id for step in forgotten]
                forgotten = []
        elif restore:
            forgotten = []
        if self._report.check:
            self._note_plan(plan, documents, delete=delete, restore=restore)
            return self._report
        outcomes = send(self._api, self._scope, plan, forgotten, delete)
        outcomes.restored = restore
        self._note(plan, outcomes)
        done = outcomes.forgotten | {row.id for _, row in outcomes.written}
        left = [*self._report.not_forgotten, *(step.id for step in forgotten)]
        self._report.not_forgotten = [memory_id for memory_id in left if memory_id not in done]
        self._write(read, documents, plan, outcomes)
        return self._report

    def _own(self, read: ReadFolder) -> dict[str, Document]:
        """Return the files within the scope, and those that are not Esker's. Raises Conflict for another pool's."""
        for path, document in read.documents.items():
            if document.head is not None and document.head.pool != self._scope.pool:
                raise Conflict(
                    f"{path} belongs to pool {document.head.pool}, and this is pool {self._scope.pool}; nothing was"
                    " changed.",
                    hint="Set ESKER_KEY to a key of that pool, or name another folder.",
                )
        return {
            path: document
            for path, document in read.documents.items()
            if document.head is None or self._scope.has(document.head.project)
        }

    def _found(self, read: ReadFolder, documents: dict[str, Document]) -> FoundBullets:
        found = find_bullets(documents)
        found.problems += read.problems
        elsewhere = find_bullets({path: each for path, each in read.documents.items() if path not in documents})
        # A file that nobody can read may name any of its memories.
        unread = {memory_id for memory_id, row in self._base.items() if row.path in read.unread}
        found.held |= {*elsewhere.by_id, *elsewhere.held, *unread}
        return found

    def _plan(self, documents: dict[str, Document], found: FoundBullets) -> SyncPlan:
        live = live_rows(self._api, self._scope)
        now, known = rows_now(self._api, [*found.by_id, *self._base], live)
        check_pool(known, found.by_id, self._base, self._scope.pool)
        plan = plan_sync(documents, found, self._base, now, list(live.values()))
        self._report.unresolved = {path: n for path, document in documents.items() if (n := document.conflicts)}
        return plan

    def _consent(self, forgotten: Collection[SyncStep]) -> bool:
        if not sys.stdin.isatty():
            return False
        ids = with_versions(self._api, self._scope, forgotten)
        plan = self._api.post("/v1/forget", {"ids": ids[:MOST_IDS], "dry_run": True})
        say(f"The lines of {counted(len(forgotten), 'memory')} were deleted, or their files are gone.")
        for row in plan["memories"]:
            say(f"  {row['id']} {row['content']}")
        return typer.confirm(f"Forget {counted(len(plan['memories']), 'memory')}?")

    def _note_plan(self, plan: SyncPlan, documents: dict[str, Document], *, delete: bool, restore: bool) -> None:
        steps = [] if restore else plan.with_step("forget")
        if not delete and needs_consent(steps, self._base, documents):
            forgotten: list[SyncStep] = []
        else:
            forgotten = without_kept(self._api, self._scope, plan, steps, set() if delete else lines_kept(plan))
        self._note(plan, SyncOutcomes(forgotten={step.id for step in forgotten}))
        self._report.not_forgotten = [step.id for step in steps if step not in forgotten]
        self._report.written = [bullet.copy.line.text for bullet in plan.new]
        self._report.corrected = [step.id for step in plan.with_step("correct")]

    def _note(self, plan: SyncPlan, outcomes: SyncOutcomes) -> None:
        report = self._report
        report.written = [row.id for _, row in outcomes.written]
        report.corrected = [row.id for row in outcomes.corrected.values()]
        report.forgotten = sorted(outcomes.forgotten)
        report.taken = [step.row.id for step in plan.with_step("take") if step.row is not None]
        report.dropped = [step.id for step in plan.with_step("drop")]
        report.conflicts = [step.id for step in plan.with_step("conflict")]
        report.problems = plan.problems

    def _write(self, read: ReadFolder, documents: dict[str, Document], plan: SyncPlan, outcomes: SyncOutcomes) -> None:
        folder = folder_edits(self._scope.pool, documents, plan, self._base, outcomes, read.taken)
        self._report.files, left = write_files(self._folder, read, folder.documents, folder.edits)
        self._report.problems += left
        if not left:
            # Otherwise the next sync finds what the pool has already, as after a crash.
            self._state.write({**self._others, **folder.base})
