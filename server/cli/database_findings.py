"""The findings of `esker doctor` in the database: isolation of pools, failed work, weak indexes, broken invariants."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from esker.server.core.clock import age
from esker.server.core.counts import counted
from esker.server.core.errors import named
from esker.server.db.backup_folder import BackupFolder
from esker.server.store.invariants import Violation
from esker.server.store.vector_indexes import Probe
from esker.server.usecases.check_invariants import Checked
from esker.server.usecases.inspect import DatabaseFacts, Stuck

CheckStatus = Literal["ok", "warning", "wrong"]

FAILING = "Nothing is lost. Check the settings of the running server, not those of this command."
_LEAST_POSTGRES = 16
_LEAST_PGVECTOR = (0, 8, 4)
_REPAIRED = "The embedding worker repairs this within minutes; check that one runs."
_DAMAGED = (
    "Esker itself never does this: look for a change by hand, a fault of the disk or an incomplete restore. `esker"
    " restore` brings back the latest backup; if the disk is sound, please report it."
)
_HALF_IMPORTED = (
    "An import that was cut off leaves this behind: repeat it with the same file. If nothing was imported: "
)
_RETRY = "When the cause is fixed, `esker doctor --retry` tries it again."


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check, and what to do about it."""

    status: CheckStatus
    what: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Inspected:
    """Facts that the checks read from the database."""

    facts: DatabaseFacts
    stuck: dict[str, Stuck]
    spaces: set[str]
    weak: dict[str, list[Probe]]


def stored_findings(found: Inspected) -> Iterator[Finding]:
    """Return what the facts read from the database say."""
    yield from _guards(found.facts)
    for pool, stuck in found.stuck.items():
        for what, error in (*stuck.jobs, *stuck.embeddings):
            yield Finding("warning", f"Pool {pool}: {what} has failed for good: {error}", _RETRY)
        for what, error in stuck.failing:
            yield Finding("warning", f"Pool {pool}: {what} fails and is retried automatically: {error}", FAILING)
        for kind, error, count in stuck.paused:
            waiting = counted(count, "job waits", "jobs wait")
            yield Finding(
                "warning", f"Pool {pool}: {waiting} for a higher cap or the next day. {error}", named(kind).hint
            )
        if stuck.overdue:
            yield Finding(
                "warning",
                f"Pool {pool}: {counted(stuck.overdue, 'row waits for its', 'rows wait for their')} vector.",
                "Check that a worker runs: `esker serve` starts one, `esker worker` is one.",
            )
    yield from _indexes(found.weak)


def invariants(checked: Checked) -> Iterator[Finding]:
    """Return what the invariants say of the pools."""
    for pool, violations in checked.broken.items():
        for one in violations:
            ids = ", ".join(one.subjects) + ("" if one.complete else ", …")
            yield Finding(
                "warning" if one.is_repaired else "wrong",
                f"Pool {pool}: {one.problem}: {ids}.",
                _way_out(one),
            )
    if not checked.broken:
        yield Finding(
            "ok", f"All {counted(checked.checks, 'invariant')} of {counted(len(checked.pools), 'pool')} hold."
        )


def _way_out(one: Violation) -> str:
    if one.is_repaired:
        return _REPAIRED
    return f"{_HALF_IMPORTED if one.is_of_imports else ''}{_DAMAGED}"


def backups(folder: BackupFolder, now: datetime) -> Finding:
    """Return how old the last backup of the folder is: a server writes one as often as it is set to."""
    due = folder.due_at()
    if due is None:
        return Finding("warning", f"There is no backup in {folder.path} yet.", "A running server writes one at once.")
    made = due - folder.pause
    if now > due + folder.pause:
        return Finding(
            "warning",
            f"The last backup in {folder.path} was made {age(now - made)}, and one is due every"
            f" {folder.pause / timedelta(hours=1):g} hours.",
            "The log of the server says why none was written; `esker backup` writes one now.",
        )
    return Finding("ok", f"The last backup in {folder.path} was made {age(now - made)}.")


def _indexes(weak: Mapping[str, Sequence[Probe]]) -> Iterator[Finding]:
    for pool, probes in weak.items():
        for probe in probes:
            yield Finding(
                "warning",
                f"Pool {pool}: the index of its {probe.tier} vectors finds {probe.agreement:.1%} of the nearest rows.",
                f"Drop it as the database's owner (DROP INDEX {probe.index}): until the worker has rebuilt it,"
                " recall is exact and slower.",
            )


def _guards(facts: DatabaseFacts) -> Iterator[Finding]:
    if facts.postgres < _LEAST_POSTGRES:
        yield Finding("wrong", f"Postgres {facts.postgres} is too old.", f"Esker needs {_LEAST_POSTGRES} or newer.")
    if _version(facts.pgvector) < _LEAST_PGVECTOR:
        yield Finding("wrong", f"pgvector {facts.pgvector} is too old.", "Esker needs 0.8.4 or newer.")
    if facts.role_is_safe and not facts.unguarded_tables:
        yield Finding("ok", f"Postgres {facts.postgres} with pgvector {facts.pgvector} keeps the pools apart.")
        return
    tables = ", ".join(facts.unguarded_tables) or "none"
    yield Finding(
        "wrong",
        f"Pools are not kept apart: role {facts.role}, tables without row-level security: {tables}.",
        "The role esker_app must own nothing and must not bypass row-level security.",
    )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
