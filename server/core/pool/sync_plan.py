"""The plan of a sync: what is sent to the pool, and what the files get, from the files, the last sync and the pool."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from esker.server.core.pool.sync_document import Bullet, Document, Head
from esker.server.core.pool.sync_line import LineKey, SyncLine, ids_in
from esker.server.core.pool.sync_merge import Copy, Decision, claimed, decide
from esker.server.core.records import Kind

_MOST_UNASKED = 5
"""How many memories a sync forgets without asking, because their lines were deleted."""


@dataclass(frozen=True, slots=True)
class PoolRow:
    """A live memory of the pool."""

    id: str
    line: SyncLine
    project: str | None
    kind: Kind


@dataclass(frozen=True, slots=True)
class BaseRow:
    """A memory as the last sync left it. `held`: its line was deleted, and nobody has agreed to forget it yet."""

    key: LineKey
    path: str
    project: str | None
    kind: Kind
    held: bool = False


@dataclass(frozen=True, slots=True)
class NewBullet:
    """A bullet without an id: a note that a person wrote."""

    copy: Copy
    project: str | None


@dataclass(frozen=True, slots=True)
class SyncProblem:
    """A place in a file that a sync leaves alone, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class SyncStep:
    """The decision about one memory, its bullet, bullets that repeat it, and its row in the pool now."""

    id: str
    decision: Decision
    bullet: Copy | None
    repeats: tuple[Copy, ...]
    row: PoolRow | None


@dataclass(slots=True)
class SyncPlan:
    """All that a sync does. `held`: ids that it leaves alone, with the problems that say why."""

    steps: list[SyncStep] = field(default_factory=list[SyncStep])
    new: list[NewBullet] = field(default_factory=list[NewBullet])
    held: set[str] = field(default_factory=set[str])
    problems: list[SyncProblem] = field(default_factory=list[SyncProblem])

    def with_step(self, name: str) -> list[SyncStep]:
        """Return the steps of one kind."""
        return [step for step in self.steps if step.decision.step == name]


@dataclass(slots=True)
class FoundBullets:
    """The bullets of all files: by the id that they name, and those without one; and what cannot be read."""

    by_id: dict[str, list[tuple[str, int, Bullet]]] = field(default_factory=dict[str, list[tuple[str, int, Bullet]]])
    new: list[tuple[str, int, Bullet]] = field(default_factory=list[tuple[str, int, Bullet]])
    held: set[str] = field(default_factory=set[str])
    problems: list[SyncProblem] = field(default_factory=list[SyncProblem])


def find_bullets(documents: Mapping[str, Document]) -> FoundBullets:
    """Return the bullets of the files of a pool. An id that is not in a bullet of its own is held: never forgotten."""
    found = FoundBullets()
    for path, document in sorted(documents.items()):
        if document.head is None and any(isinstance(block, Bullet) and block.ids for block in document.blocks):
            found.problems.append(SyncProblem(path, "It names memories, but its front matter no longer says whose."))
        for place, block in enumerate(document.blocks):
            if isinstance(block, str):
                found.held.update(ids_in(block))
            elif document.head is None:
                found.held.update(block.ids)
            elif len(block.ids) > 1:
                found.held.update(block.ids)
                found.problems.append(SyncProblem(path, f"One bullet names {' and '.join(block.ids)}; divide it."))
            elif block.ids and not block.text:
                found.held.update(block.ids)
                found.problems.append(SyncProblem(path, f"{block.ids[0]} has no words; delete its line to forget it."))
            elif block.ids:
                found.by_id.setdefault(block.ids[0], []).append((path, place, block))
            else:
                found.new.append((path, place, block))
    return found


def plan_sync(
    documents: Mapping[str, Document],
    found: FoundBullets,
    base: Mapping[str, BaseRow],
    now: Mapping[str, PoolRow],
    listed: Collection[PoolRow],
) -> SyncPlan:
    """Return the plan. `now`: id → the live row that it is, or that corrects it; `listed`: all live rows.

    A memory that no file and no last sync knows is added to its file.
    """
    plan = SyncPlan(problems=[*found.problems], held={*found.held})
    for path, place, bullet in found.new:
        plan.new.append(_new(documents[path], Copy(path, place, _line(documents[path], bullet, None))))
    for memory_id in dict.fromkeys([*found.by_id, *base]):
        if memory_id not in found.held or memory_id in found.by_id:
            _plan_one(plan, documents, found, memory_id, base.get(memory_id), now.get(memory_id))
    known = {*base, *found.by_id, *plan.held, *(row.id for row in now.values())}
    plan.steps += [SyncStep(row.id, Decision("take"), None, (), row) for row in listed if row.id not in known]
    return plan


def _plan_one(
    plan: SyncPlan,
    documents: Mapping[str, Document],
    found: FoundBullets,
    memory_id: str,
    base: BaseRow | None,
    row: PoolRow | None,
) -> None:
    key = base.key if base else row.line.key if row else None
    copies = [
        Copy(path, place, _line(documents[path], bullet, key)) for path, place, bullet in found.by_id.get(memory_id, [])
    ]
    if not copies:
        plan.steps.append(SyncStep(memory_id, decide(base and base.key, None, row and row.line), None, (), row))
        return
    homes = [each.project for each in (row, base) if each is not None]
    if homes and (astray := [copy for copy in copies if _head(documents[copy.path]).project not in homes]):
        whose = f"the project {homes[0]}" if homes[0] else "all projects"
        _hold(plan, memory_id, astray[0].path, f"{memory_id} belongs to {whose}; move its line back to that file.")
        return
    claim = claimed(copies, key)
    if claim is None:
        _hold(plan, memory_id, copies[0].path, f"{memory_id} is in several lines with different words; delete one.")
        return
    plan.new += [_new(documents[copy.path], copy) for copy in claim.new]
    decision = decide(base and base.key, claim.bullet.line, row and row.line)
    if decision.step == "foreign":
        _hold(plan, memory_id, claim.bullet.path, f"{memory_id} is not in this pool; delete its comment to write it.")
        return
    plan.steps.append(SyncStep(memory_id, decision, claim.bullet, tuple(claim.repeats), row))


def _hold(plan: SyncPlan, memory_id: str, path: str, reason: str) -> None:
    plan.held.add(memory_id)
    plan.problems.append(SyncProblem(path, reason))


def _new(document: Document, copy: Copy) -> NewBullet:
    return NewBullet(copy, _head(document).project)


def _line(document: Document, bullet: Bullet, key: LineKey | None) -> SyncLine:
    """Return the line of a bullet; one without a mark keeps its priority, and a new one is medium."""
    return SyncLine(bullet.text, bullet.priority or (key[1] if key else "medium"), _head(document).kind == "manual")


def _head(document: Document) -> Head:
    assert document.head is not None  # bullets of other files are not read
    return document.head


def needs_consent(
    forgotten: Collection[SyncStep], base: Mapping[str, BaseRow], documents: Mapping[str, Document]
) -> bool:
    """Whether a person must agree before these memories are forgotten: there are many, or a whole file is gone."""
    if len(forgotten) > _MOST_UNASKED:
        return True
    rows = [base[step.id] for step in forgotten]
    return any(row.held or not _has_memories(documents.get(row.path)) for row in rows)


def _has_memories(document: Document | None) -> bool:
    return document is not None and any(isinstance(block, Bullet) and block.ids for block in document.blocks)
