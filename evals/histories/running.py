"""One run of a history: send its sittings in order, have each observed, and read the rows with their messages."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.progress import Progress

from esker.server.core.json_input import JsonObject
from evals.asking import rows_of
from evals.histories.cases import Sitting
from evals.observation.running import message_of
from evals.retrieval.traces import Traces
from evals.scoring.matching import KeptRow
from evals.server_rows import left_of
from evals.serving import Server, until_done, wait_for_vectors

_BATCH = 200


@dataclass(slots=True)
class HistoryRun:
    """A history on a server: its project, the traces from rows to messages, and seconds of observing."""

    project: str
    traces: Traces
    seconds: float = 0.0
    reflecting: float = 0.0
    rejected: str | None = None

    def left(self, server: Server) -> list[KeptRow]:
        """Return the live rows, with messages as their sources."""
        return [self._left(server, row) for row in rows_of(server, self.project)]

    def _left(self, server: Server, row: JsonObject) -> KeptRow:
        memory = server.get(f"/v1/memories/{row['id']}")
        return left_of(row, sorted(self.traces.covered(server, memory)))


def run_history(server: Server, project: str, sittings: Sequence[Sitting], shown: Progress) -> HistoryRun:
    """Send sittings one after the other, each observed before the next, and wait until every row has its vector."""
    run = HistoryRun(project, Traces({project: project}))
    there = Counter[str]()
    began = time.monotonic()
    for sitting in shown.track(sittings, description="Observing"):
        opened = {"client": "evals", "external_id": f"{project}/{sitting.id}", "project": project}
        session = server.post("/v1/sessions", opened)["id"]
        for start in range(0, len(sitting.messages), _BATCH):
            batch = [message_of(each) for each in sitting.messages[start : start + _BATCH]]
            server.post(f"/v1/sessions/{session}/messages", {"messages": batch})
        # A resumed sitting continues its session.
        numbered = enumerate(sitting.messages, start=there[session] + 1)
        run.traces.messages |= {(session, seq): message.id for seq, message in numbered}
        there[session] += len(sitting.messages)
        until_done(server, f"/v1/sessions/{session}/observe?wait=true")
    run.seconds = time.monotonic() - began
    wait_for_vectors(server, shown, "Embedding")
    return run


def reflect_project(server: Server, run: HistoryRun, shown: Progress) -> None:
    """Have the whole project reflected, new rows included, and wait until every row has its vector."""
    began = time.monotonic()
    report = until_done(server, "/v1/reflect?wait=true", {"project": run.project, "min_age_days": 0})
    run.rejected = report["rejected"]
    run.reflecting = time.monotonic() - began
    wait_for_vectors(server, shown, "Embedding")
