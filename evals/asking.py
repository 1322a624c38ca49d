"""The facts of a case that a later session finds: by its questions, and in its pack."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from esker.server.core.json_input import JsonObject
from evals.gold_cases import GoldCase
from evals.scoring.figures import ScoreFigure
from evals.scoring.gold import Atom
from evals.scoring.matching import Judge, KeptRow
from evals.server_rows import left_of
from evals.serving import Server, wait_for_vectors
from evals.suites import UnderTest

_FOUND_AMONG = 5
_PAGE = 200


@dataclass(slots=True)
class Use:
    """Counts: the questions that were asked, those that found their fact, the facts in the pack, and its tokens."""

    facts: int = 0
    asked: int = 0
    found: int = 0
    missed: list[str] = field(default_factory=list[str])
    in_pack: int = 0
    pack_tokens: int = 0

    def figures(self, found: str, in_pack: str | None = None) -> dict[str, ScoreFigure]:
        """Return the figures of a case that has questions, by these names."""
        if not self.asked:
            return {}
        made = {found: ScoreFigure(found, self.found, self.asked, tuple(self.missed))}
        return made | ({in_pack: ScoreFigure(in_pack, self.in_pack, self.facts)} if in_pack else {})


def uses(at: UnderTest, cases: Sequence[GoldCase], when: str) -> list[Use]:
    """Return the use of each case, empty with --no-questions, once every row can be found by meaning."""
    if not at.options.questions:
        return [Use() for _ in cases]
    wait_for_vectors(at.server, at.shown, "Embedding")
    tracked = at.shown.track(cases, description=f"Asking {when}")
    return [use(at.server, case.case, case.gold.lasting(), at.by(case), when) for case in tracked]


def use(server: Server, case: str, atoms: Iterable[Atom], by: Judge, when: str) -> Use:
    """Ask the questions of a case, and begin a session in its project; `when` tells one session from another."""
    wanted = list(atoms)
    made = Use(facts=len(wanted))
    answers = {atom: hits(server, case, atom.ask) for atom in wanted if atom.ask}
    by.meaning.read([atom.fact for atom in wanted] + [hit.text for found in answers.values() for hit in found])
    for atom, found in answers.items():
        made.asked += 1
        if by.judge(atom, found).kept:
            made.found += 1
        else:
            made.missed.append(f"not found: {atom.ask} → {atom.fact}")
    pack = new_pack(server, case, when)
    shown = shown_rows(server, case, pack)
    made.in_pack = sum(by.judge(atom, shown).kept for atom in wanted)
    made.pack_tokens = pack["tokens"]
    return made


def hits(server: Server, project: str, question: str, limit: int = _FOUND_AMONG) -> list[KeptRow]:
    """Return the hits of recall within a project, best first."""
    answer = server.post("/v1/recall", {"query": question, "project": project, "limit": limit})
    return [left_of(hit) for hit in answer["hits"]]


def new_pack(server: Server, project: str, name: str) -> JsonObject:
    """Return the pack of a session that begins in a project; `name` tells it from others there."""
    opened = {"client": "evals", "external_id": f"{project}/{name}", "project": project}
    return server.get(f"/v1/sessions/{server.post('/v1/sessions', opened)['id']}/pack")


def shown_rows(server: Server, project: str, pack: JsonObject) -> list[KeptRow]:
    """Return the rows that a pack shows."""
    return [left_of(row) for row in rows_of(server, project) if row["id"] in pack["memory_ids"]]


def rows_of(server: Server, project: str) -> list[JsonObject]:
    """Return the live rows of a project, oldest first."""
    found: list[JsonObject] = []
    before: str | None = None
    while True:
        more = {"before": before} if before else {}
        page: list[JsonObject] = server.get("/v1/memories", project=project, limit=_PAGE, **more)["memories"]
        found += page
        if len(page) < _PAGE:
            return found[::-1]
        before = page[-1]["id"]
