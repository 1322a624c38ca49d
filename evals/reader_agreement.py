"""`python -m evals agreement`: how well the scores agree with a reader of reflections written by hand.

A line of the file is a handwritten reflection of one of our cases, good or with the faults of a careless writer, and a
label for each fact of the gold that it gets wrong. It gets all other facts right.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from esker.server.core.errors import InvalidInput
from evals.case_files import OWN, CaseText, StrictPart, read_cases
from evals.input import models_of
from evals.options import JsonOption
from evals.output import progress, table, write_json
from evals.reflection.cases import ReflectionCase
from evals.scoring.fact_scores import change_fault, noise_fault, open_fault, ruling_fault, unsettled_fault
from evals.scoring.gold import Gold
from evals.scoring.matching import AtomVerdict, Judge, KeptRow
from evals.scoring.meaning import Meaning
from evals.written_rows import Output

Fault = Literal[
    "turned",
    "changed",
    "dropped",
    "vague",
    "done",
    "unlimited",
    "old stated",
    "taken for fact",
    "ruling undone",
    "noise kept",
]
READ = OWN / "by-hand.jsonl"
UNSEEN = OWN / "by-hand-unseen.jsonl"


class Label(StrictPart):
    """A fact of the gold that a reflection gets wrong: the kind of fault, and the reason in a few words."""

    fact: CaseText
    fault: Fault
    why: CaseText


class Labelled(Output):
    """A reflection with the labels of a reader."""

    kind: Literal["good", "bad"]
    labels: tuple[Label, ...] = ()


@dataclass(slots=True)
class Agreement:
    """The agreement of scores and readers: counts by list or fault, and the differences in words."""

    right: Counter[str] = field(default_factory=Counter[str])
    alarms: Counter[str] = field(default_factory=Counter[str])
    wrong: Counter[str] = field(default_factory=Counter[str])
    noticed: Counter[str] = field(default_factory=Counter[str])
    differences: list[str] = field(default_factory=list[str])

    def add(self, kind: str, label: Label | None, fault: str | None, place: str) -> None:
        """Count a fact of a list (`kind`), with the reader's label and the scores' fault, if any."""
        if label is None:
            self.right[kind] += 1
            self.alarms[kind] += fault is not None
        else:
            self.wrong[label.fault] += 1
            self.noticed[label.fault] += fault is not None
        if label is None and fault is not None:
            self.differences.append(f"{place}: a reader finds no fault, the scores find {fault}")
        elif label is not None and fault is None:
            self.differences.append(f"{place}: {label.fault} ({label.why}), the scores find no fault")

    def document(self) -> dict[str, Any]:
        """Return the number of facts on which readers and scores agree, and the differences, as JSON."""
        right = {kind: {"of": of, "same": of - self.alarms[kind]} for kind, of in self.right.items()}
        wrong = {fault: {"of": of, "same": self.noticed[fault]} for fault, of in self.wrong.items()}
        return {"right": right, "wrong": wrong, "differences": self.differences}


def agreement(
    files: Annotated[list[Path] | None, typer.Argument(exists=True, dir_okay=False, help="Other files.")] = None,
    differences: Annotated[bool, typer.Option("--differences", help="List where readers and scores differ.")] = False,
    json_file: JsonOption = None,
) -> None:
    """Compare the scores with readers' labels of reflections written by hand; no server is started."""
    cases = {case.case: case for case in read_cases(OWN / "reflection.jsonl", ReflectionCase)}
    meaning, written = Meaning(), dict[str, Any]()
    for path in files or (READ, UNSEEN):
        found = agreed(_read(path, cases), cases, meaning)
        _show(path.name, found)
        if differences:
            for line in found.differences:
                typer.echo(line)
        written[path.name] = found.document()
    if json_file:
        write_json(json_file, written)


def _read(path: Path, cases: Mapping[str, ReflectionCase]) -> list[Labelled]:
    found: list[Labelled] = []
    for place, one in models_of(path, Labelled):
        if one.case not in cases:
            raise InvalidInput(f"{place}: unknown case {one.case!r}.")
        facts = {atom.fact for atom in cases[one.case].gold.atoms()}
        if astray := [label.fact for label in one.labels if label.fact not in facts]:
            raise InvalidInput(f"{place}: the gold has no fact {astray[0]!r}.")
        found.append(one)
    if not found:
        raise InvalidInput(f"{path.name} has no reflection.")
    return found


def agreed(labelled: Sequence[Labelled], cases: Mapping[str, ReflectionCase], meaning: Meaning) -> Agreement:
    """Return the agreement of the scores with labels."""
    found = Agreement()
    with progress() as shown:
        for one in shown.track(labelled, description="Scoring"):
            case = cases[one.case]
            labels = {label.fact: label for label in one.labels}
            for kind, fact, fault in fact_faults(case.gold, one.left(), Judge(case.language, meaning)):
                found.add(kind, labels.get(fact), fault, f"{one.case}, {one.kind}, {kind}: {fact}")
    return found


def fact_faults(gold: Gold, left: Sequence[KeptRow], by: Judge) -> Iterator[tuple[str, str, str | None]]:
    """Yield each fact of a gold: its list, the fact, and the fault that the scores find, or None."""
    by.read(gold, left)
    for atom in gold.keep:
        yield "keep", atom.fact, _lost(by.judge(atom, left))
    for change in gold.replaced:
        verdict = by.judge(change.new, left)
        yield "replaced", change.new.fact, _lost(verdict) or change_fault(change, verdict, left, by)
    for atom in gold.open:
        verdict = by.judge(atom, left)
        yield "open", atom.fact, _lost(verdict) or open_fault(verdict, by.language)
    for atom in gold.asserted:
        yield "asserted", atom.fact, ruling_fault(by.judge(atom, left), by.language)
    for atom in gold.unsettled:
        yield "unsettled", atom.fact, unsettled_fault(atom, left, by)
    lasting = [atom.fact for atom in gold.lasting()]
    for atom in gold.noise:
        yield "noise", atom.fact, noise_fault(atom, lasting, left, by)


def _lost(verdict: AtomVerdict) -> str | None:
    return None if verdict.kept else f"{verdict.fate}: {verdict.why} [{verdict.statement}]"


def _show(name: str, found: Agreement) -> None:
    rows = [("right by a reader", kind, str(of), str(of - found.alarms[kind])) for kind, of in found.right.items()]
    rows.append(("", "all", str(found.right.total()), str(found.right.total() - found.alarms.total())))
    rows += [("wrong by a reader", fault, str(of), str(found.noticed[fault])) for fault, of in found.wrong.items()]
    rows.append(("", "all", str(found.wrong.total()), str(found.noticed.total())))
    table(name, ["", "list or fault", "facts", "scores agree"], rows)
