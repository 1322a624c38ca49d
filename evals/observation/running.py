"""One run of the suite: send messages to a server, have each session observed, and read the rows."""

import time
from dataclasses import dataclass

from esker.server.core.json_input import JsonObject
from evals.asking import rows_of
from evals.observation.cases import CaseMessage
from evals.scoring.matching import KeptRow
from evals.server_rows import left_of
from evals.serving import Server, until_done


@dataclass(slots=True)
class ObservationRun:
    """The rows of an observed session, the share of messages covered, and the calls, tokens and seconds used."""

    left: list[KeptRow]
    coverage: float
    calls: int
    model_tokens: int
    seconds: float


def observe(server: Server, case_name: str, messages: tuple[CaseMessage, ...]) -> ObservationRun:
    """Send a session in its own project, and have it observed."""
    opened = {"client": "evals", "external_id": case_name, "project": case_name}
    session = server.post("/v1/sessions", opened)["id"]
    server.post(f"/v1/sessions/{session}/messages", {"messages": [message_of(each) for each in messages]})
    began = time.monotonic()
    until_done(server, f"/v1/sessions/{session}/observe?wait=true")
    spent = time.monotonic() - began
    memory = server.get(f"/v1/sessions/{session}/memory")
    names = dict(enumerate((message.id for message in messages), start=1))
    left = [left_of(row, [names[seq] for seq in row["source_seqs"]]) for row in rows_of(server, case_name)]
    tokens = [group["input_tokens"] + group["output_tokens"] for group in memory["groups"]]
    return ObservationRun(left, memory["coverage"], sum(map(bool, tokens)), sum(tokens), spent)


def message_of(message: CaseMessage) -> JsonObject:
    """Return the body of a message for the server."""
    return {
        "external_id": message.id,
        "role": message.role,
        "content": message.content,
        "sent_at": message.at.isoformat(),
    }
