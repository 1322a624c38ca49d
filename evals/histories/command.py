"""`python -m evals persona` and `chain`: the facts known of published histories, before and after reflecting."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from evals.asking import hits, new_pack, shown_rows, use
from evals.histories.cases import Persona, Task
from evals.histories.cri_persona import read_persona
from evals.histories.niceeval import RULES, read_chain
from evals.histories.running import HistoryRun, reflect_project, run_history
from evals.options import SuiteOptions, takes
from evals.reports import CaseResult
from evals.scoring.fact_scores import retention
from evals.scoring.figures import ScoreFigure
from evals.scoring.gold import Atom
from evals.scoring.matching import Judge, KeptRow
from evals.scoring.scored import RETENTION, score
from evals.scoring.text import sentences
from evals.serving import Server
from evals.suites import MODEL, UnderTest, run_suite

Folder = Annotated[Path, typer.Argument(exists=True, file_okay=False, help="The folder of the data.")]
_LIVED_THROUGH = ("observer", "reflector", "reflecting", *MODEL)

_AMONG = (5, 10)
"""The numbers of first hits in which a rule is looked for."""


@takes(*_LIVED_THROUGH)
def persona(path: Folder, *, options: SuiteOptions) -> None:
    """Live through a CRI persona, months of messages, sitting by sitting; then score what is known of that person."""
    case = read_persona(path)
    run_suite("persona", path, options, lambda at: [_persona(at, case, at.by(case))])


def _persona(at: UnderTest, case: Persona, by: Judge) -> CaseResult:
    history = run_history(at.server, case.case, case.sittings, at.shown)
    left = _read(history.left(at.server), by)
    scored = score(case.gold, case.log(), left, by)
    before = {f"{name} before": its for name, its in scored.figures.items() if name == RETENTION}
    figures = before | _persona_uses(at, case, left, by, "before")
    amounts = {"rows before": float(len(left)), "observing seconds": history.seconds}
    if at.options.reflecting:
        reflect_project(at.server, history, at.shown)
        left = _read(history.left(at.server), by)
        scored = score(case.gold, case.log(), left, by)
        figures |= _persona_uses(at, case, left, by, "after")
        amounts["reflecting seconds"] = history.reflecting
    amounts |= {"rows": float(len(left)), "shorter": scored.shorter, "facts/1k": scored.per_thousand_tokens}
    why = [f"nothing was changed: {history.rejected}"] if history.rejected else []
    why += [f"{name}: {fault}" for name, figure in figures.items() for fault in figure.faults]
    return CaseResult(case, ("persona",), figures | dict(scored.figures), amounts, [*why, *scored.lines()], left)


def _persona_uses(
    at: UnderTest, case: Persona, left: Sequence[KeptRow], by: Judge, when: str
) -> dict[str, ScoreFigure]:
    made = use(at.server, case.case, case.asked, by, when)
    signals = retention(f"signals {when}", [by.judge(atom, left) for atom in case.signals], lambda each: each.kept)
    return made.figures(f"found {when}", f"in pack {when}") | {signals.name: signals}


@takes(*_LIVED_THROUGH)
def chain(
    path: Folder,
    rules: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="Which task sets which rule.")] = RULES,
    *,
    options: SuiteOptions,
) -> None:
    """Live through the tasks of a NiceEval chain that set rules; ask with the prompts of those that need them."""
    name, tasks = read_chain(path, rules)
    run_suite("chain", path, options, lambda at: _measured(at, name, tasks))


def _measured(at: UnderTest, name: str, tasks: Sequence[Task]) -> list[CaseResult]:
    by = Judge("en", at.meaning)
    history = run_history(at.server, name, [task.sitting for task in tasks if task.sitting], at.shown)
    figures = _chain(at.server, history, tasks, by, "before")
    if at.options.reflecting:
        reflect_project(at.server, history, at.shown)
        for task, its in _chain(at.server, history, tasks, by, "after").items():
            figures[task] |= its
    left = history.left(at.server)
    amounts = {"reflecting seconds": history.reflecting} if at.options.reflecting else {}
    return [
        CaseResult.of(
            task, ("needs rules" if task.prompt else "sets rules",), figures[task.case].values(), amounts, left
        )
        for task in tasks
    ]


def _chain(
    server: Server, history: HistoryRun, tasks: Sequence[Task], by: Judge, when: str
) -> dict[str, dict[str, ScoreFigure]]:
    """Return figures of each task: rules that rows still state, or that its prompt and a new pack find."""
    left = _read(history.left(server), by)
    figures: dict[str, dict[str, ScoreFigure]] = {}
    for task in tasks:
        places: dict[str, Sequence[KeptRow]] = {}
        if task.prompt:
            found = hits(server, history.project, task.prompt, max(_AMONG))
            places |= {f"recall@{most} {when}": found[:most] for most in _AMONG}
            pack = new_pack(server, history.project, f"{task.case}/{when}")
            places[f"in pack {when}"] = shown_rows(server, history.project, pack)
        else:
            places[f"kept {when}"] = left
        atoms = task.needs or task.sets
        figures[task.case] = {name: _held(name, atoms, rows, by) for name, rows in places.items()}
    return figures


def _held(name: str, atoms: Sequence[Atom], rows: Sequence[KeptRow], by: Judge) -> ScoreFigure:
    return retention(name, [by.judge(atom, _read(rows, by)) for atom in atoms], lambda each: each.kept)


def _read(rows: Sequence[KeptRow], by: Judge) -> Sequence[KeptRow]:
    """Embed the sentences of rows in one batch, which is faster than one by one; return the rows."""
    by.meaning.read(each for row in rows for each in (row.text, *sentences(row.text)))
    return rows
