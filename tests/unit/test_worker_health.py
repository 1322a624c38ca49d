"""A worker that keeps dying is reported by the server and by `esker doctor`."""

import asyncio
import sys
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest

from esker.server.cli import doctor, worker_process
from esker.server.core.config.settings import Settings
from esker.server.core.errors import EskerError
from esker.server.core.reports import WorkerHealth
from tests.support.waiting import eventually

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
            await worker_process.keep_worker("postgresql://x", health)
    assert str(health).startswith("died 2 times in a row: ValueError: ")
    assert "abcdefghijklmnop" not in str(health)
    assert capfd.readouterr().err.count("starting") == 2, "what a worker prints is passed on"


# Says that it runs, and ends a while after its standard input has ended.
SLOW_TO_END = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); sys.stdin.read(); time.sleep(0.3)"


async def test_a_worker_has_ended_when_its_keeper_has_even_if_that_is_cancelled_twice(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = tmp_path / "pid"
    monkeypatch.setattr(worker_process, "_COMMAND", (sys.executable, "-c", SLOW_TO_END, str(said)))
    keeping = asyncio.create_task(worker_process.keep_worker("postgresql://x", WorkerHealth()))

    async def runs() -> bool:
        return said.exists() and bool(said.read_text())

    await eventually(runs)
    for _ in range(2):
        keeping.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await keeping
    assert not psutil.pid_exists(int(said.read_text()))


def test_a_worker_that_runs_for_long_clears_the_record() -> None:
    health = WorkerHealth()
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


@pytest.mark.parametrize(("worker", "status"), [("running", "ok"), ("none", "ok"), ("died once: boom", "wrong")])
def test_doctor_reports_a_worker_that_keeps_dying(worker: str, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "Api", _Server)
    monkeypatch.setattr(_Server, "answer", _Server.answer | {"worker": worker})
    findings = list(doctor._server(Settings()))
    assert {finding.status for finding in findings} == {"ok", status}
    assert any("boom" in finding.what for finding in findings) == (status == "wrong")


def test_doctor_notices_a_program_that_is_not_esker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "Api", _Server)
    monkeypatch.setattr(_Server, "answer", ["other"])
    with pytest.raises(EskerError, match="is not Esker"):
        list(doctor._server(Settings()))
