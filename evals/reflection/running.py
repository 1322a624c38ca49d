"""One run of the suite: have a stored log reflected by a server, and read the rows."""

import time
from dataclasses import dataclass

from esker.server.core.json_input import JsonObject
from evals.asking import rows_of
from evals.logs import Log
from evals.reflection.cases import ReflectionCase
from evals.scoring.matching import KeptRow
from evals.server_rows import left_of
from evals.serving import Server, until_done


@dataclass(slots=True)
class ReflectionRun:
    """The rows that a reflection left, the reason if it was rejected, its seconds and its tokens."""

    left: list[KeptRow]
    rejected: str | None
    seconds: float
    model_tokens: int = 0


def stored_log(case: ReflectionCase) -> Log:
    """Return the log of a case in the form that is stored."""
    return Log(case.case, case.rows)


def reflect(server: Server, case: ReflectionCase) -> ReflectionRun:
    """Have the log of a case reflected: its session, or its project if it has several.

    Raises InvalidInput, Unavailable with the error of the job.
    """
    began = time.monotonic()
    log = stored_log(case)
    if len(case.sessions) == 1:
        report = until_done(server, f"/v1/sessions/{log.session(case.sessions[0])}/reflect?wait=true")
    else:
        report = until_done(server, "/v1/reflect?wait=true", {"project": case.case, "min_age_days": 0})
    spent = time.monotonic() - began
    names = log.row_ids()
    left = [left_of(row, _cited(row, names)) for row in rows_of(server, case.case)]
    tokens = sum(_tokens_of(server, reflection) for reflection in report["reflection_ids"])
    return ReflectionRun(left, report["rejected"], spent, tokens)


def _tokens_of(server: Server, reflection: str) -> int:
    document = server.get(f"/v1/reflections/{reflection}")
    return document["input_tokens"] + document["output_tokens"]


def _cited(row: JsonObject, names: dict[str, str]) -> list[str]:
    """Return the sources of a row, or itself: rows of the case by name, others by id."""
    cited: list[str] = row["source_ids"] or [row["id"]]
    return [names.get(each, each) for each in cited]
