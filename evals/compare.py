"""`python -m evals compare A B`: the changes between two runs of a suite, and whether they exceed noise.

Both files contain figures for each query and arm, or for each case. The difference of the means is tested by a paired
bootstrap: queries are resampled with replacement, and the middle 95 % of the resampled means is the confidence interval
(Efron and Tibshirani 1993, chapter 13).
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from esker.server.core.errors import InvalidInput
from evals.input import expected, json_of
from evals.options import JsonOption
from evals.output import remark, table, write_json

_DRAWS = 10_000
_OUTSIDE = 2.5  # percent of the resampled means at either end


@dataclass(frozen=True, slots=True)
class FigureChange:
    """The change of a figure between two runs, over their common queries; `low` to `high` is its 95 % interval."""

    arm: str
    figure: str
    queries: int
    before: float
    after: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """`worse` or `better` if chance does not explain the change, else empty."""
        return "worse" if self.high < 0 else "better" if self.low > 0 else ""


def compare(
    before: Annotated[Path, typer.Argument(help="The JSON of the run to compare with.")],
    after: Annotated[Path, typer.Argument(help="The JSON of the run to judge.")],
    seed: Annotated[int, typer.Option(min=0, help="The seed of the resampling.")] = 0,
    json_file: JsonOption = None,
) -> None:
    """Compare two runs; the exit code is 1 if a figure is worse beyond noise."""
    first, second = _read(before), _read(after)
    if first["sha256"] != second["sha256"]:
        remark("The runs used different data: only queries of the same name are compared.")
    found = changes(first["queries"], second["queries"], seed)
    if not found:
        raise InvalidInput("The two runs have no case or query with a common figure.")
    for line in _missing(first["queries"], second["queries"]):
        remark(line)
    rows = [
        (
            f"{change.arm} {change.figure}",
            f"{change.queries:,}",
            *(f"{100 * value:.1f}" for value in (change.before, change.after)),
            f"{100 * (change.after - change.before):+.1f}",
            f"{100 * change.low:+.1f} … {100 * change.high:+.1f}",
            change.verdict,
        )
        for change in found
    ]
    table(f"{before.name} → {after.name}", ["", "of", "before", "after", "change", "95 %", ""], rows)
    if json_file:
        write_json(json_file, found)
    if any(change.verdict == "worse" for change in found):
        raise typer.Exit(1)


def _read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json_of(path)
    with expected("run of evals", path, "A suite writes one with --json."):
        queries = document["queries"] if "queries" in document else _of_cases(document)
        read = [_query(query) for query in queries]
        if len({query["id"] for query in read}) < len(read):
            raise ValueError("it contains a query twice")
        return {"sha256": document["data"]["sha256"], "queries": read}


def _number(value: Any) -> float:
    """Return a figure. Raises ValueError for infinity and NaN."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    return float(value)


def _query(query: Mapping[str, Any]) -> dict[str, Any]:
    arms = {arm: {name: _number(value) for name, value in its["figures"].items()} for arm, its in query["arms"].items()}
    return {"id": query["id"], "arms": {arm: {"figures": figures} for arm, figures in arms.items()}}


def _of_cases(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return cases in the form of queries, with their suite as the arm."""
    return [{"id": case["id"], "arms": {document["suite"]: {"figures": case["figures"]}}} for case in document["cases"]]


Queries = Sequence[Mapping[str, Any]]


def changes(before: Queries, after: Queries, seed: int) -> list[FigureChange]:
    """Return the change of each figure of each arm, over the queries that both runs have."""
    pairs = _pairs(before, after)
    return [_change(arm, figure, np.array(values), seed) for (arm, figure), values in pairs.items()]


def _pairs(before: Queries, after: Queries) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Return the values before and after, by arm and figure, of queries of the same name."""
    earlier = {query["id"]: query for query in before}
    pairs: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for query in after:
        for arm, reply in query["arms"].items():
            was = earlier.get(query["id"], {"arms": {}})["arms"].get(arm, {"figures": {}})["figures"]
            for figure, value in reply["figures"].items():
                if figure in was:
                    pairs.setdefault((arm, figure), []).append((was[figure], value))
    return pairs


def _missing(before: Queries, after: Queries) -> Iterator[str]:
    """Yield a line for each figure that one run has for fewer cases or queries than the other."""
    counts = [
        Counter((arm, name) for query in its for arm in query["arms"] for name in query["arms"][arm]["figures"])
        for its in (before, after)
    ]
    for arm, name in counts[0] | counts[1]:
        first, second = (its[arm, name] for its in counts)
        if first != second:
            yield f"{arm} {name}: {first:,} before, {second:,} after; only common ones are compared."


def _change(arm: str, figure: str, values: "np.ndarray[Any, np.dtype[np.float64]]", seed: int) -> FigureChange:
    gains = values[:, 1] - values[:, 0]
    drawn = np.random.default_rng(seed).integers(0, len(gains), (_DRAWS, len(gains)))
    low, high = np.percentile(gains[drawn].mean(axis=1), [_OUTSIDE, 100 - _OUTSIDE])
    before, after = values.mean(axis=0)
    return FigureChange(arm, figure, len(gains), float(before), float(after), float(low), float(high))
