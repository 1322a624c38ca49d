"""The benchmark: one run measures everything, each figure beside its floor, and leaves nothing behind."""

import re
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import fmean, median

import pytest

from esker.server.bench import bench_server
from esker.server.bench.figures import BenchFigure, Effort, timing
from esker.server.bench.run import run
from esker.server.bench.texts import Writer
from esker.server.core.text.tokens import estimate_tokens
from tests.support.embedding_server import embedding_server
from tests.support.forks import forked_command
from tests.support.made import made_at, shared_folder

DOCUMENTED = Path(__file__).parents[2] / "docs/benchmarks.md"
LITTLE = Effort(packs=2, recalls=2, questions=2, searches=2, pages=2, seconds=0.1, texts=5, rounds=1)


class Steps:
    """Remembers the steps of a run, and how much of each is done."""

    def __init__(self) -> None:
        self.left: dict[str, int] = {}

    @contextmanager
    def step(self, what: str, total: int) -> Generator[Callable[[int], None]]:
        """Remember a step."""
        self.left[what] = total

        def advance(done: int) -> None:
            self.left[what] -= done

        yield advance


@pytest.fixture
def left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """A folder for temporary files, in which nothing of a benchmark is left at the end."""
    # A Unix socket's path is limited to about a hundred bytes.
    with tempfile.TemporaryDirectory(prefix="esker-test-", dir=shared_folder()) as folder:
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", None)
        yield
        assert list(Path(folder).glob("esker-bench-*")) == []


@pytest.fixture
def made_databases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each server of a benchmark a database that was made before."""
    start = bench_server._process

    def started(environment: Mapping[str, str], module: str, *arguments: str) -> AbstractContextManager[str]:
        if "--data-dir" in arguments:
            made_at(Path(arguments[-1]))
        return start(environment, module, *arguments)

    monkeypatch.setattr(bench_server, "_process", started)


@pytest.fixture
def forked_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork each server of Esker from a process that has imported it; the empty server starts as usual."""
    alone = bench_server.child_command

    def command(module: str, *arguments: str) -> list[str]:
        return forked_command(*arguments) if module == "esker" else alone(module, *arguments)

    monkeypatch.setattr(bench_server, "child_command", command)


@pytest.mark.usefixtures("left_as_it_was", "made_databases", "forked_servers", "loads_library")
async def test_one_run_measures_everything_beside_its_floor_and_leaves_nothing() -> None:
    steps = Steps()
    async with embedding_server() as model:
        report = await run(600, (), LITTLE, steps, f"openai:{model.url}#fake")
    assert set(steps.left.values()) == {0}
    assert {figure.name for figure in report.figures} == set(
        re.findall(r"^\| `([^`]+)` \|", DOCUMENTED.read_text(encoding="utf-8"), re.MULTILINE)
    )
    for figure in report.figures:
        assert figure.value > 0, figure
        assert figure.floor_value > 0, figure
    packs = [figure.more for figure in report.figures if figure.name == "pack"]
    assert all(1_000 < more["tokens"] < 15_100 for more in packs)
    assert {figure.more["errors"] for figure in report.figures if "errors" in figure.more} == {0}
    assert "Postgres" in report.before
    measured = {figure.name: figure for figure in report.figures}
    assert measured["nearest"].more["agreement at 10"] > 0.9
    assert measured["recall during a backfill"].more["degraded"] == 0
    assert measured["query embedding"].more["ms when asked again"] > 0


def test_a_ratio_is_the_time_divided_by_its_floor() -> None:
    assert BenchFigure("pack", "", "ms", 9.0, "", 3.0).ratio == 3.0
    assert BenchFigure("writes", "", "rows/s", 500.0, "", 2_000.0).ratio == 4.0


def test_a_timing_has_the_median_and_the_95th_percentile() -> None:
    assert timing([n / 1_000 for n in range(100, 0, -1)]) == timing([n / 1_000 for n in range(1, 101)])
    found = timing([n / 1_000 for n in range(1, 101)])
    assert (found.p50, found.p95) == pytest.approx((51, 96))


def test_made_up_turns_have_the_lengths_of_real_ones() -> None:
    writer = Writer(5)
    lengths = [len(writer.turn()) for _ in range(5_000)]
    assert 130 < fmean(lengths) < 142
    assert min(lengths) >= 40
    assert max(lengths) > 5 * median(lengths)


def test_sentences_are_reproducible_and_have_their_token_counts() -> None:
    assert [Writer(3).sentence() for _ in range(5)] == [Writer(3).sentence()] * 5
    for sentence in Writer(4).counted_sentences(50):
        assert sentence["tokens"] == estimate_tokens(str(sentence["content"]))
