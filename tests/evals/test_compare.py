"""The changes between two runs, told apart from noise."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evals.__main__ import app
from evals.compare import changes


def queries(values: list[float], *, arm: str = "full") -> list[dict[str, Any]]:
    """Return queries in the form of a run, with one figure each."""
    return [
        {"id": f"c/{place}", "arms": {arm: {"figures": {"recall@10": value}}}} for place, value in enumerate(values)
    ]


def test_a_loss_on_every_fifth_query_is_worse_and_a_gain_better() -> None:
    before = [1.0] * 100
    after = [0.0 if place % 5 == 0 else 1.0 for place in range(100)]
    [change] = changes(queries(before), queries(after), seed=0)
    assert (change.arm, change.figure, change.queries, change.before) == ("full", "recall@10", 100, 1.0)
    assert change.after == pytest.approx(0.8)
    # The mean of 100 draws with share 0.2 is within 0.2 ± 1.96 · sqrt(0.2 · 0.8 / 100) = 0.2 ± 0.078 in 95 % of cases.
    assert (change.low, change.high) == (pytest.approx(-0.28, abs=0.015), pytest.approx(-0.12, abs=0.015))
    assert change.verdict == "worse"
    [back] = changes(queries(after), queries(before), seed=0)
    assert back.verdict == "better"


def test_ups_and_downs_that_cancel_are_noise() -> None:
    dice = random.Random(1)  # noqa: S311 - not a secret
    before = [dice.random() for _ in range(200)]
    after = [value + dice.gauss(0, 0.1) for value in before]
    [change] = changes(queries(before), queries(after), seed=0)
    assert change.verdict == ""
    assert change.low < 0 < change.high


def test_pairing_shows_a_small_loss_of_every_query_behind_large_differences() -> None:
    before = [place / 50 for place in range(50)]
    [change] = changes(queries(before), queries([value - 0.01 for value in before]), seed=0)
    assert change.verdict == "worse"


def test_only_common_queries_and_figures_are_compared() -> None:
    before = queries([1.0, 1.0])
    after = [*queries([1.0]), *queries([0.0], arm="vector"), {"id": "c/9", "arms": before[0]["arms"]}]
    [change] = changes(before, after, seed=0)
    assert (change.arm, change.queries) == ("full", 1)


def written(path: Path, values: list[float], sha256: str = "same") -> str:
    """Write a run; return the name of its file."""
    path.write_text(json.dumps({"data": {"sha256": sha256}, "queries": queries(values)}), encoding="utf-8")
    return str(path)


def test_the_exit_code_is_1_only_for_a_regression(tmp_path: Path) -> None:
    good, bad = written(tmp_path / "good.json", [1.0] * 30), written(tmp_path / "bad.json", [0.5] * 30)
    out = tmp_path / "changes.json"
    worse = CliRunner().invoke(app, ["compare", good, bad, "--json", str(out)])
    assert worse.exit_code == 1
    assert json.loads(out.read_text())[0]["high"] == -0.5
    assert CliRunner().invoke(app, ["compare", bad, good]).exit_code == 0
    assert CliRunner().invoke(app, ["compare", good, good]).exit_code == 0


def test_a_file_that_is_not_a_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text("[]", encoding="utf-8")
    done = CliRunner().invoke(app, ["compare", str(tmp_path / "no.json"), str(tmp_path / "no.json")])
    assert "no.json is not a run of evals" in str(done.exception)


@pytest.mark.parametrize("figure", [float("nan"), float("inf")])
def test_a_figure_that_is_not_finite_is_refused(figure: float, tmp_path: Path) -> None:
    good, bad = written(tmp_path / "good.json", [1.0] * 30), written(tmp_path / "bad.json", [figure] * 30)
    done = CliRunner().invoke(app, ["compare", good, bad])
    assert "is not a finite number" in str(done.exception)


def test_a_figure_that_some_queries_lack_is_reported(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    all_of_them, some = written(tmp_path / "a.json", [1.0] * 30), written(tmp_path / "b.json", [1.0] * 20)
    done = CliRunner().invoke(app, ["compare", all_of_them, some])
    assert done.exit_code == 0
    assert "30 before, 20 after" in capfd.readouterr().err + done.output + (done.stderr or "")
