"""One run of the suite against a server: messages in, an observation of each session, rows out."""

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from evals.asking import rows_of
from evals.observation.cases import Case, Said
from evals.scoring.gold import Row
from evals.scoring.matching import Left
from evals.serving import Server

Json = dict[str, Any]


@dataclass(slots=True)
class Observed:
    """The rows that were made of a session, and what that took: calls, their tokens, seconds, and the share covered."""

    left: list[Left]
    coverage: float
    calls: int
    model_tokens: int
    seconds: float


def observe(server: Server, case_name: str, messages: tuple[Said, ...]) -> Observed:
    """Send a session and have it observed, in a project of its own."""
    opened = {"client": "evals", "external_id": case_name, "project": case_name}
    session = server.post("/v1/sessions", opened)["id"]
    server.post(f"/v1/sessions/{session}/messages", {"messages": [message_of(each) for each in messages]})
    began = time.monotonic()
    while server.post(f"/v1/sessions/{session}/observe?wait=true")["queued"]:
        pass
    spent = time.monotonic() - began
    told = server.get(f"/v1/sessions/{session}/memory")
    names = dict(enumerate((message.id for message in messages), start=1))
    left = [_left(row, names) for row in rows_of(server, case_name)]
    tokens = [group["input_tokens"] + group["output_tokens"] for group in told["groups"]]
    return Observed(left, told["coverage"], sum(map(bool, tokens)), sum(tokens), spent)


def message_of(said: Said) -> Json:
    """Return a message as it is sent."""
    return {"external_id": said.id, "role": said.role, "content": said.content, "sent_at": said.at.isoformat()}


def _left(row: Json, names: dict[int, str]) -> Left:
    refers = tuple(datetime.fromisoformat(row[name]) for name in ("refers_from", "refers_to") if row[name])
    sources = tuple(names[seq] for seq in row["source_seqs"])
    return Left(row["id"], row["content"], sources, row["trust"], datetime.fromisoformat(row["said_at"]), refers)


def log_of(case: Case) -> list[Row]:
    """Return the messages of a case as the log that rows go back to."""
    return [Row(id=each.id, at=each.at, text=each.text or "-") for each in case.messages]
