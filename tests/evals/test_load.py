"""The load driver: its figures, and a short run that finds every acknowledged message stored once."""

import json
import time
from pathlib import Path

import psycopg
import pytest

from esker.server.core.pool.lines import read_batch
from evals.load.importing import write_pool_file
from evals.load.outcomes import Outcome, percentile, slope, summary
from evals.load.report import report
from evals.load.run import Plan, run_load
from evals.load.watching import Watch
from evals.output import progress
from tests.support.kept_servers import KeptServer


def test_percentiles_are_values_that_occurred() -> None:
    values = [float(n) for n in range(1, 101)]
    assert [percentile(values, part) for part in (50, 95, 99, 100)] == [50.0, 95.0, 99.0, 100.0]
    assert percentile([7.0], 99) == 7.0
    assert percentile([], 50) is None


def test_a_slope_is_fitted_over_all_points_and_not_from_the_first_to_the_last() -> None:
    flat = [(float(n), 100.0) for n in range(100)]
    fitted = slope([*flat[:-1], (99.0, 200.0)])
    assert fitted is not None
    assert fitted[0] < 0.1, "the last value alone would make it 1.01"
    assert slope([(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]) == pytest.approx((2.0, 0.0))
    assert slope(flat[:2]) is None


def test_refusals_are_no_errors_if_they_say_when_to_come_back() -> None:
    outcomes = [
        Outcome("recall", "steady", 0.0, 0.1, "ok"),
        Outcome("recall", "steady", 0.0, 0.1, "shed"),
        Outcome("recall", "steady", 0.0, 0.1, "unavailable", retry_after=False),
        Outcome("recall", "steady", 0.0, 0.1, "error"),
    ]
    found = summary(outcomes)
    assert (found.ok, found.shed, found.unavailable, found.errors, found.error_rate) == (1, 1, 1, 1, 0.5)


def test_a_made_pool_file_can_be_imported_and_is_the_same_each_time(tmp_path: Path) -> None:
    first = write_pool_file(tmp_path / "a.jsonl", 1, seed=3).read_bytes()
    assert first == write_pool_file(tmp_path / "b.jsonl", 1, seed=3).read_bytes()
    batch = read_batch(first, 2)
    assert batch.ends
    assert batch.header.counts["memory"] == len(batch.memories) > 100


async def test_a_run_counts_each_kind_and_finds_every_acknowledged_message_once(
    kept_server: KeptServer, owner_url: str
) -> None:
    plan = Plan(4, 0.8, seed=1, pause_seconds=0.05, spike=2, spike_seconds=0.2, after_seconds=0.1)
    watch = Watch(kept_server.url, time.perf_counter())
    watch.start()
    with progress() as shown:
        ran = await run_load(plan, kept_server.url, None, watch, shown)
    watch.stop()
    found = report(plan, ran, watch)
    json.dumps(found)
    with psycopg.connect(owner_url) as connection:
        assert connection.execute("SELECT count(*) FROM messages").fetchone() == (ran.stored,)
    assert ran.stored >= ran.acknowledged > 0
    assert (ran.lost, ran.twice) == (0, 0)
    steady = found["phases"]["steady"]["requests"]
    assert steady["all"]["errors"] == 0, found["problems"]
    assert steady["ingest"]["ok"] > 0
    assert found["phases"]["spike"]["requests"]["open"]["requests"] > 0
