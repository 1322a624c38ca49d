"""One run of the suite against a server: logs in, a reflection of each, rows out; and what is found before and after."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from evals.logs import Log
from evals.reflection.cases import Case
from evals.scoring.gold import Atom
from evals.scoring.matching import Judge, Left
from evals.serving import Server
from server.core.errors import EskerError

Json = dict[str, Any]

_FOUND_AMONG = 5
_MOST_ROWS = 1_000
_PAGE = 200


@dataclass(slots=True)
class Reflected:
    """What a reflection left of a case, why it did nothing if so, and how long it took in seconds."""

    left: list[Left]
    rejected: str | None
    by: str
    seconds: float
    model_tokens: int = 0


@dataclass(slots=True)
class Use:
    """What questions and the pack of a new session find: facts by question, facts in the pack and its tokens."""

    asked: int = 0
    found: int = 0
    missed: list[str] = field(default_factory=list[str])
    in_pack: int = 0
    pack_tokens: int = 0


def log_of(case: Case) -> Log:
    """Return the log of a case as it is stored."""
    return Log(case.case, case.rows)


def reflect(server: Server, case: Case) -> Reflected:
    """Have the log of a case reflected: its session, or where it has several the project.

    Raises EskerError where the reflector fails for good.
    """
    began = time.monotonic()
    log = log_of(case)
    if len(case.sessions) == 1:
        report = _until_done(server, f"/v1/sessions/{log.session(case.sessions[0])}/reflect?wait=true", None)
    else:
        report = _until_done(server, "/v1/reflect?wait=true", {"project": case.case, "min_age_days": 0})
    spent = time.monotonic() - began
    names = log.row_ids()
    left = [_left(row, names) for row in rows_of(server, case.case)]
    tokens = sum(_tokens_of(server, reflection) for reflection in report["reflection_ids"])
    return Reflected(left, report["rejected"], report["reflector"], spent, tokens)


def _tokens_of(server: Server, reflection: str) -> int:
    told = server.get(f"/v1/reflections/{reflection}")
    return told["input_tokens"] + told["output_tokens"]


def _until_done(server: Server, path: str, body: Json | None) -> Json:
    while (report := server.post(path, body))["queued"]:
        if errors := [job["last_error"] for job in report.get("jobs", ()) if job["last_error"]]:
            raise EskerError(f"It could not be reflected: {errors[0]}")
    return report


def rows_of(server: Server, project: str) -> list[Json]:
    """Return the live rows of a project, oldest first."""
    found: list[Json] = []
    before: str | None = None
    while len(found) < _MOST_ROWS:
        more = {"before": before} if before else {}
        page: list[Json] = server.get("/v1/memories", project=project, limit=_PAGE, **more)["memories"]
        found += page
        if len(page) < _PAGE:
            break
        before = page[-1]["id"]
    return found[::-1]


def _left(row: Json, names: dict[str, str]) -> Left:
    """Return a row of the server as it is scored; what it stands for has the names of the case's rows."""
    cited = row["source_ids"] or [row["id"]]
    refers = tuple(datetime.fromisoformat(row[name]) for name in ("refers_from", "refers_to") if row[name])
    at = datetime.fromisoformat(row["said_at"])
    return Left(row["id"], row["content"], tuple(names.get(each, each) for each in cited), row["trust"], at, refers)


def use(server: Server, case: Case, by: Judge, when: str) -> Use:
    """Ask the questions of a case, and begin a session in its project; `when` tells one session from another."""
    made = Use()
    for atom in case.gold.lasting():
        if atom.ask:
            question = {"query": atom.ask, "project": case.case, "limit": _FOUND_AMONG}
            hits = server.post("/v1/recall", question)["hits"]
            _count(made, atom, [Left(hit["id"], hit["content"]) for hit in hits], by)
    opened = {"client": "evals", "external_id": f"{case.case}/{when}", "project": case.case}
    pack = server.get(f"/v1/sessions/{server.post('/v1/sessions', opened)['id']}/pack")
    shown = [Left(row["id"], row["content"]) for row in rows_of(server, case.case) if row["id"] in pack["memory_ids"]]
    made.in_pack = sum(by.judge(atom, shown).kept for atom in case.gold.lasting())
    made.pack_tokens = pack["tokens"]
    return made


def _count(made: Use, atom: Atom, hits: Sequence[Left], by: Judge) -> None:
    made.asked += 1
    if by.judge(atom, hits).kept:
        made.found += 1
    else:
        made.missed.append(f"{atom.ask} → {atom.fact}")
