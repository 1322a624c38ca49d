"""`python -m evals persona` and `chain`: what is known of other people's histories, before and after reflecting."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from evals.asking import hits, new_pack, shown_rows, use
from evals.histories.cases import Persona, Task
from evals.histories.cri_persona import read_persona
from evals.histories.niceeval import RULES, read_chain
from evals.histories.running import Lived, live, reflect_project
from evals.reports import CaseResult
from evals.runs import (
    JsonOption,
    KeyOption,
    ObserverOption,
    RecordOption,
    ReflectorOption,
    Replay,
    UnderTest,
    Url,
    finish,
    under_test,
)
from evals.scoring.fact_scores import retention
from evals.scoring.figures import ScoreFigure
from evals.scoring.gold import Atom
from evals.scoring.matching import Judge, Left
from evals.scoring.meaning import THRESHOLDS, Meaning
from evals.scoring.scored import RETENTION, score
from evals.scoring.text import sentences
from evals.serving import Server

Folder = Annotated[Path, typer.Argument(exists=True, file_okay=False, help="The folder of the data.")]
Reflect = Annotated[bool, typer.Option("--reflect/--no-reflect", help="Reflect, and ask once more after that.")]

_AMONG = (5, 10)
"""Of how many first hits a rule has to be one."""


def persona(
    path: Folder,
    observer: ObserverOption = None,
    reflector: ReflectorOption = None,
    reflecting: Reflect = True,
    record: RecordOption = None,
    replay: Replay = None,
    url: Url = None,
    key: KeyOption = None,
    json_file: JsonOption = None,
) -> None:
    """Live through a CRI persona, months of messages, sitting by sitting; then say who that person is in the end."""
    case = read_persona(path)
    meaning = Meaning()
    with under_test(url, key, record, replay, observer=observer, reflector=reflector) as at:
        result = _persona(at, case, Judge(case.language, meaning), reflecting=reflecting)
    run = {"observer": at.observer, "reflector": at.reflector if reflecting else None, "thresholds": THRESHOLDS}
    finish("persona", [result], run, path, json_file, f"persona by {at.observer}: {len(case.sittings)} sittings")


def _persona(at: UnderTest, case: Persona, by: Judge, *, reflecting: bool) -> CaseResult:
    lived = live(at.server, case.case, case.sittings, at.shown)
    left = _read(lived.left(at.server), by)
    scored = score(case.gold, case.log(), left, by)
    before = {f"{name} before": its for name, its in scored.figures.items() if name == RETENTION}
    figures = before | _persona_uses(at, case, left, by, "before")
    amounts = {"rows before": float(len(left)), "observing seconds": lived.seconds}
    if reflecting:
        reflect_project(at.server, lived, at.shown)
        left = _read(lived.left(at.server), by)
        scored = score(case.gold, case.log(), left, by)
        figures |= _persona_uses(at, case, left, by, "after")
        amounts["reflecting seconds"] = lived.reflecting
    amounts |= {"rows": float(len(left)), "shorter": scored.shorter, "facts/1k": scored.per_thousand_tokens}
    why = [f"nothing was changed: {lived.rejected}"] if lived.rejected else []
    why += [f"{name}: {fault}" for name, figure in figures.items() for fault in figure.faults]
    rows = [asdict(row) for row in left]
    return CaseResult(case, ("persona",), figures | dict(scored.figures), amounts, [*why, *scored.lines()], rows)


def _persona_uses(at: UnderTest, case: Persona, left: Sequence[Left], by: Judge, when: str) -> dict[str, ScoreFigure]:
    made = use(at.server, case.case, case.asked, by, when)
    signals = retention(f"signals {when}", [by.judge(atom, left) for atom in case.signals], lambda each: each.kept)
    return {
        f"found {when}": ScoreFigure(f"found {when}", made.found, made.asked, tuple(made.missed)),
        f"in pack {when}": ScoreFigure(f"in pack {when}", made.in_pack, len(case.asked)),
        f"signals {when}": signals,
    }


def chain(
    path: Folder,
    rules: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="Which task sets which rule.")] = RULES,
    observer: ObserverOption = None,
    reflector: ReflectorOption = None,
    reflecting: Reflect = True,
    record: RecordOption = None,
    replay: Replay = None,
    url: Url = None,
    key: KeyOption = None,
    json_file: JsonOption = None,
) -> None:
    """Live through the tasks of a NiceEval chain that set rules; ask with the prompts of those that need them."""
    name, tasks = read_chain(path, rules)
    by = Judge("en", Meaning())
    with under_test(url, key, record, replay, observer=observer, reflector=reflector) as at:
        lived = live(at.server, name, [task.sitting for task in tasks if task.sitting], at.shown)
        figures = _chain(at.server, lived, tasks, by, "before")
        if reflecting:
            reflect_project(at.server, lived, at.shown)
            for task, its in _chain(at.server, lived, tasks, by, "after").items():
                figures[task] |= its
        left = [asdict(row) for row in lived.left(at.server)]
    results = [
        CaseResult(
            task,
            ("needs rules" if task.prompt else "sets rules",),
            figures[task.case],
            {"reflecting seconds": lived.reflecting} if reflecting else {},
            [f"{each.name}: {fault}" for each in figures[task.case].values() for fault in each.faults],
            left,
        )
        for task in tasks
    ]
    run = {"observer": at.observer, "reflector": at.reflector if reflecting else None, "thresholds": THRESHOLDS}
    finish("chain", results, run, path, json_file, f"{name} by {at.observer}: {len(tasks)} tasks")


def _chain(
    server: Server, lived: Lived, tasks: Sequence[Task], by: Judge, when: str
) -> dict[str, dict[str, ScoreFigure]]:
    """Return figures of each task: rules that its rows still say, or that its prompt and a new session's pack find."""
    left = _read(lived.left(server), by)
    figures: dict[str, dict[str, ScoreFigure]] = {}
    for task in tasks:
        places: dict[str, Sequence[Left]] = {}
        if task.prompt:
            found = hits(server, lived.project, task.prompt, max(_AMONG))
            places |= {f"recall@{most} {when}": found[:most] for most in _AMONG}
            pack = new_pack(server, lived.project, f"{task.case}/{when}")
            places[f"in pack {when}"] = shown_rows(server, lived.project, pack)
        else:
            places[f"kept {when}"] = left
        atoms = task.needs or task.sets
        figures[task.case] = {name: _held(name, atoms, rows, by) for name, rows in places.items()}
    return figures


def _held(name: str, atoms: Sequence[Atom], rows: Sequence[Left], by: Judge) -> ScoreFigure:
    return retention(name, [by.judge(atom, _read(rows, by)) for atom in atoms], lambda each: each.kept)


def _read(rows: Sequence[Left], by: Judge) -> Sequence[Left]:
    """Embed the sentences of rows together, which is quicker than one by one as they are judged; return the rows."""
    by.meaning.read(each for row in rows for each in (row.text, *sentences(row.text)))
    return rows
