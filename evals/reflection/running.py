"""One run of the suite against a server: logs in, a reflection of each, rows out."""

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from evals.asking import rows_of
from evals.logs import Log
from evals.reflection.cases import Case
from evals.scoring.matching import Left
from evals.serving import Server
from server.core.errors import EskerError

Json = dict[str, Any]


@dataclass(slots=True)
class Reflected:
    """What a reflection left of a case, why it did nothing if so, and how long it took in seconds."""

    left: list[Left]
    rejected: str | None
    by: str
    seconds: float
    model_tokens: int = 0


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
        report = until_done(server, f"/v1/sessions/{log.session(case.sessions[0])}/reflect?wait=true", None)
    else:
        report = until_done(server, "/v1/reflect?wait=true", {"project": case.case, "min_age_days": 0})
    spent = time.monotonic() - began
    names = log.row_ids()
    left = [_left(row, names) for row in rows_of(server, case.case)]
    tokens = sum(_tokens_of(server, reflection) for reflection in report["reflection_ids"])
    return Reflected(left, report["rejected"], report["reflector"], spent, tokens)


def _tokens_of(server: Server, reflection: str) -> int:
    told = server.get(f"/v1/reflections/{reflection}")
    return told["input_tokens"] + told["output_tokens"]


def until_done(server: Server, path: str, body: Json | None) -> Json:
    """Have something reflected and return the report. Raises EskerError where the reflector fails for good."""
    while (report := server.post(path, body))["queued"]:
        if errors := [job["last_error"] for job in report.get("jobs", ()) if job["last_error"]]:
            raise EskerError(f"It could not be reflected: {errors[0]}")
    return report


def _left(row: Json, names: dict[str, str]) -> Left:
    """Return a row of the server as it is scored; what it stands for has the names of the case's rows."""
    cited: list[str] = row["source_ids"] or [row["id"]]
    refers = tuple(datetime.fromisoformat(row[name]) for name in ("refers_from", "refers_to") if row[name])
    at = datetime.fromisoformat(row["said_at"])
    return Left(row["id"], row["content"], tuple(names.get(each, each) for each in cited), row["trust"], at, refers)
