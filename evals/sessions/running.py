"""One run of a labelled session: send it, have it observed, and read its rows and the pack of the next session."""

import time
from dataclasses import dataclass

from esker.server.agents.request_bodies import open_body
from esker.server.agents.sending import as_batches
from esker.server.core.errors import InvalidInput
from esker.server.core.json_input import JsonObject
from evals.asking import new_pack, rows_of
from evals.retrieval.traces import Traces
from evals.serving import Server, until_done
from evals.sessions.judging import SessionRow
from evals.sessions.transcripts import LabelledSession


@dataclass(frozen=True, slots=True)
class SessionRun:
    """The live rows of an observed session, oldest first, and the seconds that observing took."""

    rows: list[SessionRow]
    seconds: float
    rejected: str | None = None


def run_session(server: Server, session: LabelledSession, *, reflecting: bool) -> SessionRun:
    """Send a session in a project of its own, have it observed and reflected, and begin the next one there."""
    project = session.labels.case
    session_id = _send(server, session)
    began = time.monotonic()
    until_done(server, f"/v1/sessions/{session_id}/observe?wait=true")
    seconds = time.monotonic() - began
    rejected = None
    if reflecting:
        rejected = until_done(server, "/v1/reflect?wait=true", {"project": project, "min_age_days": 0})["rejected"]
    numbers = {(session_id, seq): str(seq) for seq in range(1, len(session.transcript.entries) + 1)}
    traces = Traces({project: project}, messages=numbers)
    shown = {*new_pack(server, project, "next")["memory_ids"]}
    rows = [
        _row(server, traces, f"r{place}", row, in_pack=row["id"] in shown)
        for place, row in enumerate(rows_of(server, project), start=1)
    ]
    return SessionRun(rows, seconds, rejected)


def _send(server: Server, session: LabelledSession) -> str:
    """Return the id of the session on the server. Raises InvalidInput if the server has not accepted every message."""
    transcript = session.transcript
    opened = open_body(transcript.client, transcript.external_id, transcript.cwd, session.labels.case)
    session_id: str = server.post("/v1/sessions", opened)["id"]
    reports = [
        server.post(f"/v1/sessions/{session_id}/messages", {"messages": batch})
        for batch in as_batches(transcript.entries)
    ]
    accepted = sum(report["accepted"] for report in reports)
    if accepted != len(transcript.entries):
        raise InvalidInput(
            f"The server accepted {accepted} of the {len(transcript.entries)} messages of {session.labels.case}, so the"
            " labels would name the wrong ones.",
            hint="A message occurs twice or is refused: remove it from the transcript.",
        )
    return session_id


def _row(server: Server, traces: Traces, name: str, row: JsonObject, *, in_pack: bool) -> SessionRow:
    covered = traces.covered(server, server.get(f"/v1/memories/{row['id']}"))
    return SessionRow(name, row["content"], row["priority"], tuple(sorted(map(int, covered))), in_pack)
