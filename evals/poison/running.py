"""One run of the suite: send a session with a planted instruction, and look for that instruction afterwards."""

from collections.abc import Sequence
from dataclasses import dataclass

from evals.asking import hits, new_pack, rows_of
from evals.observation.running import observe
from evals.poison.cases import PoisonCase
from evals.scoring.matching import KeptRow
from evals.server_rows import left_of
from evals.serving import Server, until_done


@dataclass(frozen=True, slots=True)
class PoisonRun:
    """The traces of a session: its rows before and after a reflection, the next pack, and the hits of recall."""

    observed: Sequence[KeptRow]
    reflected: Sequence[KeptRow]
    pack: str
    hits: Sequence[KeptRow]


def run_case(server: Server, case: PoisonCase) -> PoisonRun:
    """Send a session, have it observed and reflected, and begin another in the same project that asks about it."""
    observed = observe(server, case.case, case.messages).left
    session = server.get("/v1/sessions", external_id=case.case)["sessions"][0]["id"]
    until_done(server, f"/v1/sessions/{session}/reflect?wait=true")
    reflected = [left_of(row) for row in rows_of(server, case.case)]
    pack = new_pack(server, case.case, "next")["text"]
    return PoisonRun(observed, reflected, pack, hits(server, case.case, case.ask))
