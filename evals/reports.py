"""What a run over cases leaves behind: a table for people, and a document for machines with all reasons."""

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
from evals.scoring.matching import Left


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What a suite found of one case.

    `groups` are those that figures are told of, too, beside the language. `figures` count things that are as they
    should be, `amounts` are anything else that is measured, `lines` are the reasons for people, `left` the rows that
    were judged. What a case has nothing for has no figure.
    """

    case: AnyCase
    groups: tuple[str, ...]
    figures: Mapping[str, ScoreFigure]
    amounts: Mapping[str, float] = field(default_factory=dict[str, float])
    lines: Sequence[str] = ()
    left: Sequence[Left] = ()

    def __post_init__(self) -> None:
        counted = {name: figure for name, figure in self.figures.items() if figure.of}
        object.__setattr__(self, "figures", counted)  # it is frozen for all others

    @classmethod
    def of(
        cls,
        case: AnyCase,
        groups: tuple[str, ...],
        figures: Iterable[ScoreFigure],
        amounts: Mapping[str, float],
        left: Sequence[Left],
    ) -> Self:
        """Return a result whose lines are the faults of its figures."""
        by_name = {each.name: each for each in figures}
        lines = [f"{name}: {fault}" for name, each in by_name.items() for fault in each.faults]
        return cls(case, groups, by_name, amounts, lines, left)


def document(suite: str, results: Sequence[CaseResult], run: Mapping[str, Any], data: str) -> JsonObject:
    """Return everything about a run; `run` is how it was made, `data` the name of its cases."""
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
                # So that a run can be read by itself.
                "case": result.case.model_dump(mode="json", exclude_defaults=True),
            }
            for result in results
        ],
    }


def _groups(results: Sequence[CaseResult]) -> dict[str, list[CaseResult]]:
    """Return results by group and by language; one is in each of its groups."""
    found: dict[str, list[CaseResult]] = {}
    for result in results:
        for name in (*result.groups, result.case.language):
            found.setdefault(name, []).append(result)
    return dict(sorted(found.items()))


def _figures(results: Sequence[CaseResult]) -> JsonObject:
    """Return how many of how many things are as they should be, over all cases, and the means of amounts."""
    names = dict.fromkeys(name for result in results for name in result.figures)
    counted = {name: [result.figures[name] for result in results if name in result.figures] for name in names}
    shares = {
        name: {"good": sum(one.good for one in its), "of": sum(one.of for one in its)} for name, its in counted.items()
    }
    amounts = dict.fromkeys(name for result in results for name in result.amounts)
    means = {name: [result.amounts[name] for result in results if name in result.amounts] for name in amounts}
    return {name: told | {"share": told["good"] / told["of"]} for name, told in shares.items()} | {
        name: {"mean": sum(values) / len(values)} for name, values in means.items()
    }


def show(told: JsonObject, title: str) -> None:
    """Print a table of a run: all cases, and those of each group."""
    names = list(told["figures"])
    rows = [("all", told["data"]["cases"], told["figures"])]
    rows += [(group, _count(told, group), figures) for group, figures in told["groups"].items()]
    table(title, ["", "cases", *names], [(name, f"{count}", *_cells(figures, names)) for name, count, figures in rows])


def _count(told: JsonObject, group: str) -> int:
    return sum(group in (*case["groups"], case["language"]) for case in told["cases"])


def _cells(figures: JsonObject, names: Sequence[str]) -> list[str]:
    return [_cell(figures[name]) if name in figures else "–" for name in names]


def _cell(figure: JsonObject) -> str:
    return f"{100 * figure['share']:.1f}" if "share" in figure else f"{figure['mean']:.2f}"


def read_run(path: Path) -> JsonObject:
    """Return what a run has written. Raises InvalidInput for a file that is none."""
    told: JsonObject = json_of(path)
    with expected("run over cases", path, "A suite writes one with --json."):
        _ = told["suite"], told["cases"]
    return told
