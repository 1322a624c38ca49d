"""The pool in a sync: its live memories, and the requests that correct, forget and write some."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from esker.server.agents.api import Api
from esker.server.core.errors import Conflict
from esker.server.core.http_answers import ServerRefused
from esker.server.core.ids import memory_ids_in
from esker.server.core.json_input import JsonObject
from esker.server.core.pool.sync_edits import SyncOutcomes
from esker.server.core.pool.sync_line import SyncLine, cleaned
from esker.server.core.pool.sync_plan import NewBullet, PoolRow, SyncPlan, SyncProblem, SyncStep

_PAGE = 1000
_FORGOTTEN_AT_ONCE = 100
MOST_IDS = 1_000
"""The most ids in one request to forget."""
# A row of these kinds that superseded another is its correction; a reflection is another row.
_CORRECTIONS = ("note", "manual")
_GONE = (404, 422)


@dataclass(frozen=True, slots=True)
class SyncScope:
    """The memories of a sync: those of one project, or all."""

    pool: str
    project: str | None

    def has(self, project: str | None) -> bool:
        """Whether memories of a project belong to the sync."""
        return self.project is None or project == self.project


def present_name(api: Api, pool: str, project: str) -> str:
    """Return the present name of a project. It is read from its rows; the list also has rows of no project."""
    named = (str(row["project"]) for row in _listed(api, SyncScope(pool, project)) if row["project"] is not None)
    return next(named, project)


def live_rows(api: Api, scope: SyncScope) -> dict[str, PoolRow]:
    """Return the live memories within a scope. Raises Unavailable, ServerRefused."""
    rows = map(_row, _listed(api, scope))
    return {row.id: row for row in rows if scope.has(row.project) and row.line.text}


def _listed(api: Api, scope: SyncScope, **which: str) -> Iterator[JsonObject]:
    before = None
    while True:
        page = api.get("/v1/memories", project=scope.project, before=before, limit=_PAGE, **which)
        yield from page["memories"]
        before = page["next"]
        if before is None:
            return


def with_versions(api: Api, scope: SyncScope, steps: Iterable[SyncStep]) -> list[str]:
    """Return the ids of rows that are to be forgotten, with the rows that they correct, which would be live again."""
    rows = [step.row for step in steps if step.row is not None]
    ids = [row.id for row in rows]
    if not any(row.kind in _CORRECTIONS for row in rows):
        return ids
    former: dict[str, list[str]] = {}
    for row in _listed(api, scope, include_superseded="true"):
        if row["superseded_by"] is not None:
            former.setdefault(row["superseded_by"], []).append(row["id"])
    waiting = [row.id for row in rows if row.kind in _CORRECTIONS]
    while waiting:
        corrected = former.pop(waiting.pop(), [])
        ids += corrected
        waiting += corrected
    return list(dict.fromkeys(ids))


def rows_now(api: Api, ids: Iterable[str], live: Mapping[str, PoolRow]) -> tuple[dict[str, PoolRow], set[str]]:
    """Return for each id the live row that it is or that corrects it; and the ids that the pool knows."""
    now: dict[str, PoolRow] = {}
    known: set[str] = set()
    for memory_id in ids:
        seen: set[str] = set()
        current: str | None = memory_id
        while current is not None and current not in seen:
            if current in live:
                now[memory_id] = live[current]
                known.add(memory_id)
                break
            seen.add(current)
            row = _superseded(api, current)
            if row is None:
                break
            known.add(memory_id)
            current = _correction(api, row["superseded_by"], live)
    return now, known


def _superseded(api: Api, memory_id: str) -> JsonObject | None:
    try:
        return api.get(_path(memory_id))
    except ServerRefused as error:
        if error.status in _GONE:
            return None
        raise


def _correction(api: Api, superseder: str | None, live: Mapping[str, PoolRow]) -> str | None:
    """Return the id of a row that superseded another if it corrects that one."""
    if superseder is None or not memory_ids_in(superseder):
        return None
    row = live.get(superseder)
    kind = row.kind if row else (_superseded(api, superseder) or {}).get("kind")
    return superseder if kind in _CORRECTIONS else None


def check_pool(known: Collection[str], asked: Collection[str], base: Collection[str], pool: str) -> None:
    """Raise Conflict if files that were never synchronised with this pool name only memories that it does not have."""
    if asked and not base and not known:
        raise Conflict(
            f"The memories in these files are not in pool {pool}; nothing was changed.",
            hint="Set ESKER_URL and ESKER_KEY to the server and the pool of this folder, or name another folder.",
        )


def send(api: Api, scope: SyncScope, plan: SyncPlan, forgotten: Collection[SyncStep], agreed: bool) -> SyncOutcomes:
    """Send the changes of a plan; each is safe to repeat. A refusal of the pool becomes a problem of the plan.

    `agreed`: a person also agreed to forget memories that have a line, but say the same as a deleted one.
    """
    outcomes = SyncOutcomes()
    for bullet in plan.new:
        if (row := _asked(plan, bullet.copy.path, api.post, "/v1/memories", _note(bullet))) is not None:
            outcomes.written.append((bullet, _row(row)))
    for step in plan.with_step("correct"):
        assert step.row is not None
        assert step.bullet is not None
        if (row := _asked(plan, step.bullet.path, api.patch, _path(step.row.id), _correction_of(step))) is not None:
            outcomes.corrected[step.id] = _row(row)
    shown = {row.id for _, row in outcomes.written} | {row.id for row in outcomes.corrected.values()}
    # A bullet that only lost its comment is written again as the memory that it was.
    steps = [step for step in forgotten if step.id not in shown]
    kept = shown if agreed else shown | lines_kept(plan)
    for start in range(0, len(steps), _FORGOTTEN_AT_ONCE):
        some = without_kept(api, scope, plan, steps[start : start + _FORGOTTEN_AT_ONCE], kept)
        if some and _asked(plan, "", api.post, "/v1/forget", {"ids": with_versions(api, scope, some)}) is not None:
            outcomes.forgotten |= {step.id for step in some}
    return outcomes


def lines_kept(plan: SyncPlan) -> set[str]:
    """Return the ids of the memories that have a line in some file."""
    return {step.row.id for step in plan.steps if step.bullet is not None and step.row is not None} | plan.held


def without_kept(
    api: Api, scope: SyncScope, plan: SyncPlan, steps: Collection[SyncStep], kept: Collection[str]
) -> list[SyncStep]:
    """Return the steps that forget none of the memories that are kept; the others become problems of the plan.

    Forgetting a memory also forgets what says the same or only repeats it, and a person may keep a line of that.
    """

    def also_forgotten(some: Collection[SyncStep]) -> list[str] | None:
        body = {"ids": with_versions(api, scope, some), "dry_run": True}
        planned = _asked(plan, "", api.post, "/v1/forget", body)
        return None if planned is None else [row["id"] for row in planned["memories"] if row["id"] in kept]

    if not steps or not kept or (together := also_forgotten(steps)) == []:
        return list(steps)
    if together is None:
        return []
    found: list[SyncStep] = []
    for step in steps:
        if also := also_forgotten([step]):
            reason = f"{step.id} is not forgotten: that would also forget {', '.join(also)}, whose line is still there."
            plan.problems.append(SyncProblem("", f"{reason} --delete forgets both, --restore writes the line again."))
        elif also is not None:
            found.append(step)
    return found


def _asked(plan: SyncPlan, path: str, ask: Callable[[str, object], Any], route: str, body: JsonObject) -> Any:
    """Return the answer to a request, or None if the server refused it, which becomes a problem of a file."""
    try:
        return ask(route, body)
    except ServerRefused as error:
        plan.problems.append(SyncProblem(path, str(error)))
        return None


def _path(memory_id: str) -> str:
    return f"/v1/memories/{quote(memory_id, safe='')}"


def _note(bullet: NewBullet) -> JsonObject:
    line = bullet.copy.line
    kind = "manual" if line.pinned else "note"
    body: JsonObject = {"content": line.text, "priority": line.priority, "kind": kind}
    return body if bullet.project is None else {**body, "project": bullet.project}


def _correction_of(step: SyncStep) -> JsonObject:
    """Return the parts of a memory that its line changes."""
    line, row = step.decision.line, step.row
    assert line is not None
    assert row is not None
    changed: JsonObject = {}
    if line.key[0] != row.line.key[0]:
        changed["content"] = line.text
    if line.priority != row.line.priority:
        changed["priority"] = line.priority
    if line.pinned != row.line.pinned:
        changed["pinned"] = line.pinned
    return changed


def _row(row: JsonObject) -> PoolRow:
    line = SyncLine(cleaned(row["content"]), row["priority"], row["kind"] == "manual")
    return PoolRow(row["id"], line, row["project"], row["kind"])
