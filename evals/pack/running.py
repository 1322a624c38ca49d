"""One run of the suite: store rows, begin a session, and read its pack twice."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil

from esker.server.core.budgets import budgets
from esker.server.core.json_input import JsonObject
from evals.logs import an_id, memory_line, pool_file, session_lines
from evals.pack.cases import PackCase, StoredRow
from evals.serving import Server

_EARLIER = "earlier"
# Rows that are forgotten by one request.
_TOGETHER = 100


@dataclass(frozen=True, slots=True)
class PackRun:
    """The rows of a pack by name, its tokens, and whether a later request gave the same bytes."""

    shown: list[str]
    tokens: int
    text: str
    stays: bool


def pack(server: Server, case: PackCase, now: datetime) -> PackRun:
    """Store the rows of a case, begin its session, and read its pack; then forget everything.

    A session without a project sees every project, so a case must be alone on its server.
    """
    server.post_lines("/v1/import", pool_file(_lines(case, now), now.isoformat()))
    opened: JsonObject = {"client": "evals", "external_id": case.case, "effective_context": _context_for(case.budget)}
    opened |= {"project": case.project} if case.project else {}
    session = server.post("/v1/sessions", opened)["id"]
    first = server.get(f"/v1/sessions/{session}/pack")
    later = {"content": "Something else was learned later.", "priority": "high", "external_id": f"{case.case}/later"}
    server.post("/v1/memories", later | ({"project": case.project} if case.project else {}))
    second = server.get(f"/v1/sessions/{session}/pack")
    names = {an_id("mem", case.case, row.id): row.id for row in case.rows}
    _forget_everything(server)
    shown = [names[row_id] for row_id in first["memory_ids"] if row_id in names]
    same = (first["text"], first["sha256"]) == (second["text"], second["sha256"])
    return PackRun(shown, first["tokens"], first["text"], same)


def _context_for(pack_tokens: int) -> int:
    """Return the smallest context of a session whose pack may have this many tokens."""
    return ceil(1_000 * pack_tokens / budgets(1_000).global_pack_tokens)


def _forget_everything(server: Server) -> None:
    while rows := server.get("/v1/memories", include_superseded="true", limit=_TOGETHER)["memories"]:
        server.post("/v1/forget", {"ids": [row["id"] for row in rows]})


def _lines(case: PackCase, now: datetime) -> list[JsonObject]:
    sessions: list[JsonObject] = []
    memories: list[JsonObject] = []
    reflections: list[JsonObject] = []
    for row in sorted(case.rows, key=lambda row: -row.days_ago):
        line = _memory(case, row, now)
        if row.kind == "observation":
            session = an_id("ses", case.case, row.id)
            message = (row.id, row.text, row.by, line["said_at"])
            sessions += session_lines(session, f"{case.case}/{row.id}", row.project, [message])
            line |= {"session_id": session, "group_id": an_id("grp", session), "source_seqs": [1]}
        if row.kind == "reflection":
            reflection, source = _reflected(case, row, line)
            session = an_id("ses", case.case, row.id, _EARLIER)
            message = (_EARLIER, source["content"], row.by, line["said_at"])
            sessions += session_lines(session, f"{case.case}/{row.id}/{_EARLIER}", row.project, [message])
            source |= {"session_id": session, "group_id": an_id("grp", session), "source_seqs": [1]}
            memories.append(source)
            reflections.append(reflection)
        memories.append(line)
    return [*sessions, *memories, *reflections]


def _memory(case: PackCase, row: StoredRow, now: datetime) -> JsonObject:
    at = now - timedelta(days=row.days_ago)
    line = memory_line(an_id("mem", case.case, row.id), row.text, at.isoformat(), kind=row.kind, trust=row.by)
    line |= {"priority": row.priority, "category": row.category, "project": row.project}
    if row.replaced_by:
        ended = next(other.days_ago for other in case.rows if other.id == row.replaced_by)
        superseded_at = (now - timedelta(days=min(ended, row.days_ago))).isoformat()
        line |= {
            "superseded_by": an_id("mem", case.case, row.replaced_by),
            "superseded_at": superseded_at,
            "outdated_at": superseded_at,
        }
    if row.ended_days_ago is not None:
        line["valid_until"] = (now - timedelta(days=row.ended_days_ago)).isoformat()
    return line


def _reflected(case: PackCase, row: StoredRow, line: JsonObject) -> tuple[JsonObject, JsonObject]:
    """Return the reflection that wrote a row, and its source row."""
    reflection, source = an_id("ref", case.case, row.id), an_id("mem", case.case, row.id, _EARLIER)
    at = line["said_at"]
    line |= {"reflection_id": reflection, "source_ids": [source]}
    superseded = {"superseded_by": reflection, "superseded_at": at, "outdated_at": at}
    before = memory_line(source, f"At length: {row.text}", at, project=row.project, trust=row.by, **superseded)
    line_of_reflection: JsonObject = {
        "type": "reflection",
        "id": reflection,
        "scope": "pool",
        "session_id": None,
        "project": row.project,
    }
    line_of_reflection |= {
        "reflector": "evals",
        "state": "committed",
        "level": 0,
        "reason": None,
        "undone_at": None,
        "created_at": at,
    }
    line_of_reflection |= {"input_ids": [source], "output_ids": [line["id"]], "dropped_ids": []}
    return line_of_reflection | {"tokens_before": 2, "tokens_after": 1, "input_tokens": 0, "output_tokens": 0}, before


def now() -> datetime:
    """Return the time from which the ages of rows are counted."""
    return datetime.now(UTC)
