"""The report of a run over cases: a table for people, and a document for machines with all reasons."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from esker.server.core.json_input import JsonObject
from evals.case_files import AnyCase, sha256
from evals.input import expected, json_of
from evals.output import table
from evals.provenance import hardware, versions
from evals.scoring.figures import ScoreFigure
from evals.scoring.matching import KeptRow


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one case.

    Figures are also reported for each of its `groups` and for its language. `figures` count the things that are right,
    `amounts` are other measurements, `lines` are the reasons in words, `left` are the judged rows. A figure with
    nothing to count is left out.
    """

    case: AnyCase
    groups: tuple[str, ...]
    figures: Mapping[str, ScoreFigure]
    amounts: Mapping[str, float] = field(default_factory=dict[str, float])
    lines: Sequence[str] = ()
    left: Sequence[KeptRow] = ()

    def __post_init__(self) -> None:
        counted = {name: figure for name, figure in self.figures.items() if figure.of}
        object.__setattr__(self, "figures", counted)  # the instance is frozen

    @classmethod
    def of(
        cls,
        case: AnyCase,
        groups: tuple[str, ...],
        figures: Iterable[ScoreFigure],
        amounts: Mapping[str, float],
        left: Sequence[KeptRow],
    ) -> Self:
        """Return a result whose lines name the faults in its figures."""
        by_name = {each.name: each for each in figures}
        lines = [f"{name}: {fault}" for name, each in by_name.items() for fault in each.faults]
        return cls(case, groups, by_name, amounts, lines, left)


def document(suite: str, results: Sequence[CaseResult], run: Mapping[str, Any], data: str) -> JsonObject:
    """Return everything about a run; `run` are its settings, `data` is the name of its cases."""
    return {
        "suite": suite,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "hardware": hardware(),
        "versions": versions(),
        "data": {"name": data, "sha256": sha256([result.case for result in results]), "cases": len(results)},
        "run": run,
        "figures": _figures(results),
        "groups": {group: _figures(its) for group, its in _groups(results).items()},
        "cases": [
            {
                "id": result.case.case,
                "about": result.case.about,
                "groups": result.groups,
                "language": result.case.language,
                "figures": {name: figure.share for name, figure in result.figures.items()},
                "counts": {name: [figure.good, figure.of] for name, figure in result.figures.items()},
                "amounts": result.amounts,
                "lines": result.lines,
                "left": result.left,
                # The document is readable without the file of cases.
                "case": result.case.model_dump(mode="json", exclude_defaults=True),
            }
            for result in results
        ],
    }


def _groups(results: Sequence[CaseResult]) -> dict[str, list[CaseResult]]:
    """Return results by group and by language; a result is in each of its groups."""
    found: dict[str, list[CaseResult]] = {}
    for result in results:
        for name in (*result.groups, result.case.language):
            found.setdefault(name, []).append(result)
    return dict(sorted(found.items()))


def _figures(results: Sequence[CaseResult]) -> JsonObject:
    """Return the sums of the figures over all cases, and the means of the amounts."""
    names = dict.fromkeys(name for result in results for name in result.figures)
    counted = {name: [result.figures[name] for result in results if name in result.figures] for name in names}
    shares = {
        name: {"good": sum(one.good for one in its), "of": sum(one.of for one in its)} for name, its in counted.items()
    }
    amounts = dict.fromkeys(name for result in results for name in result.amounts)
    means = {name: [result.amounts[name] for result in results if name in result.amounts] for name in amounts}
    return {name: sums | {"share": sums["good"] / sums["of"]} for name, sums in shares.items()} | {
        name: {"mean": sum(values) / len(values)} for name, values in means.items()
    }


def show(run: JsonObject, title: str) -> None:
    """Print a table of a run: all cases, and those of each group."""
    names = list(run["figures"])
    rows = [("all", run["data"]["cases"], run["figures"])]
    rows += [(group, _count(run, group), figures) for group, figures in run["groups"].items()]
    table(title, ["", "cases", *names], [(name, f"{count}", *_cells(figures, names)) for name, count, figures in rows])


def _count(run: JsonObject, group: str) -> int:
    return sum(group in (*case["groups"], case["language"]) for case in run["cases"])


def _cells(figures: JsonObject, names: Sequence[str]) -> list[str]:
    return [_cell(figures[name]) if name in figures else "–" for name in names]


def _cell(figure: JsonObject) -> str:
    return f"{100 * figure['share']:.1f}" if "share" in figure else f"{figure['mean']:.2f}"


def read_run(path: Path) -> JsonObject:
    """Return the document of a run. Raises InvalidInput if the file is not one."""
    run: JsonObject = json_of(path)
    with expected("run over cases", path, "A suite writes one with --json."):
        _ = run["suite"], run["cases"]
    return run
