"""One run of the suite against a server: a session with something planted in it, and where that turns up afterwards."""

from collections.abc import Sequence
from dataclasses import dataclass

from evals.asking import hits, new_pack, rows_of
from evals.observation.running import observe
from evals.poison.cases import Case
from evals.scoring.matching import Left
from evals.serving import Server

_FOUND_AMONG = 5


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What is left of a session: its rows before and after a reflection, the pack of the next, what recall answers."""

    observed: Sequence[Left]
    reflected: Sequence[Left]
    pack: str
    hits: Sequence[Left]


def live_through(server: Server, case: Case) -> Aftermath:
    """Send a session, have it observed and reflected, and begin another in the same project that asks about it."""
    observed = observe(server, case.case, case.messages).left
    session = server.get("/v1/sessions", external_id=case.case)["sessions"][0]["id"]
    while server.post(f"/v1/sessions/{session}/reflect?wait=true")["queued"]:
        pass
    reflected = [Left(row["id"], row["content"], by=row["trust"]) for row in rows_of(server, case.case)]
    pack = new_pack(server, case.case, "next")["text"]
    return Aftermath(observed, reflected, pack, hits(server, case.case, case.ask, _FOUND_AMONG))
