"""One run of the suite against a server: a session with something planted in it, and where that turns up afterwards."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evals.asking import rows_of
from evals.observation.running import observe
from evals.poison.cases import Case
from evals.scoring.matching import Left
from evals.serving import Server

Json = dict[str, Any]


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
    opened = {"client": "evals", "external_id": f"{case.case}/next", "project": case.case}
    begun = server.post("/v1/sessions", opened)["id"]
    pack = server.get(f"/v1/sessions/{begun}/pack")["text"]
    answer = server.post("/v1/recall", {"query": case.ask, "project": case.case, "limit": 5})
    hits = [Left(hit["id"], hit["content"], by=hit["trust"]) for hit in answer["hits"]]
    return Aftermath(observed, reflected, pack, hits)
