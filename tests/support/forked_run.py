"""Run the tests in several processes, which are forked when the tests have been collected.

Processes that start anew would each import and collect everything, which costs as much as hundreds of tests. The first
process hands out batches of tests in their order, and reports their results.
"""

import atexit
import os
import signal
import traceback
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, NoReturn

import pytest

from tests.support.clearing import end_with_parent, ignore_stops
from tests.support.forks import observe_once
from tests.support.made import leave_run
from tests.support.properties import draw_once

_HEAVY = frozenset({"minilm", "meaning", "loads_library"})
"""Fixtures with which a process imports torch, which costs it seconds once; the tests of such files share processes."""
_IN_HAND = 2
"""Batches that a process has: the one that it runs, and the next, whose first test it must know to keep fixtures."""
_LEFT_OPEN: list[object] = []
"""The first process's capture of output: a library may have kept the standard error of its import, and write to it."""
_SLOW_STEP_SECONDS = 0.05
"""Seconds from which the setup or teardown of a test is reported, for `--durations`."""


@dataclass(slots=True)
class _Process:
    """A process and the tests that it has and has not reported, as places in the list of all tests."""

    number: int
    pid: int
    connection: Connection
    batches: deque[deque[int]] = field(default_factory=deque[deque[int]])


class ForkedRun:
    """The plugin of the process that collects the tests."""

    def __init__(self, config: pytest.Config, processes: int) -> None:
        self._config = config
        self._count = processes
        self._items: list[pytest.Item] = []
        self._light: deque[deque[int]] = deque()
        self._heavy: deque[deque[int]] = deque()
        self._running: dict[Connection, _Process] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run all tests, unless pytest itself would run none."""
        if session.testsfailed or not session.items or session.config.option.collectonly:
            return None
        self._items = session.items
        for places in _files(session.items):
            heavy = any(_HEAVY & {*getattr(self._items[place], "fixturenames", ())} for place in places)
            (self._heavy if heavy else self._light).append(places)
        # It is emptied once, before any process uses it.
        _temporary(self._config).getbasetemp()
        observe_once()
        draw_once()
        try:
            count = min(self._count, len(self._light) + len(self._heavy))
            processes = [self._fork(number) for number in range(count)]
            for process in processes * _IN_HAND:
                self._give(process)
            while self._running and not (session.shouldfail or session.shouldstop):
                ready = wait([*self._running])
                for process in [process for connection, process in self._running.items() if connection in ready]:
                    self._hear(process)
        finally:
            for process in [*self._running.values()]:
                process.connection.close()
                os.kill(process.pid, signal.SIGTERM)  # it may be in the middle of a test
            for process in self._running.values():
                os.waitpid(process.pid, 0)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        return True

    def _fork(self, number: int) -> _Process:
        connection, other = Pipe()
        parent = os.getpid()
        if not (pid := os.fork()):
            # A process that held the ends of others would hide that one of them has ended.
            for end in (connection, *self._running):
                end.close()
            _be(number, parent, self._config, self._items, other)
        other.close()
        process = self._running[connection] = _Process(number, pid, connection)
        return process

    def _give(self, process: _Process) -> None:
        """Give the process the next batch; an empty one is the last.

        One process of three begins with the files that import torch, and the others help only at the end.
        """
        if process.batches and not process.batches[-1]:
            return
        waiting = self._light or self._heavy if process.number % 3 else self._heavy or self._light
        batch = waiting.popleft() if waiting else deque[int]()
        process.batches.append(batch)
        with suppress(BrokenPipeError, ConnectionResetError):  # `_hear` notices its end
            process.connection.send([*batch])

    def _hear(self, process: _Process) -> None:
        """Report the test that the process has run, or its end."""
        reports: list[dict[str, Any]] | None = None
        with suppress(EOFError, ConnectionResetError):
            reports = process.connection.recv()
        if reports is None:
            self._bury(process)
            return
        process.batches[0].popleft()
        if not process.batches[0]:
            process.batches.popleft()
            self._give(process)
        hook = self._config.hook
        for data in reports:
            hook.pytest_runtest_logreport(report=hook.pytest_report_from_serializable(config=self._config, data=data))

    def _bury(self, process: _Process) -> None:
        """Report the test in which the process ended, if it ended too early, and start another for what is left."""
        del self._running[process.connection]
        process.connection.close()
        code = os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1])
        left = [batch for batch in process.batches if batch]
        if not left:
            if code:
                raise RuntimeError(f"a process of the tests ended with {code} after its last test")
            return
        item = self._items[left[0].popleft()]
        reason = f"the process of the test ended with {code}"
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", reason, "call")
        self._config.hook.pytest_runtest_logreport(report=report)
        self._light.extendleft(batch for batch in reversed(left) if batch)
        heir = self._fork(process.number)
        for _ in range(_IN_HAND):
            self._give(heir)


def _files(items: Sequence[pytest.Item]) -> list[deque[int]]:
    """Return the places of the tests of each file, which share what is set up for it."""
    return [deque(places) for _, places in groupby(range(len(items)), lambda place: items[place].path)]


def _temporary(config: pytest.Config) -> Any:
    """Return what makes temporary folders."""
    return vars(config)["_tmp_path_factory"]


# A process of the tests ---------------------------------------------------------------------------------------------


class _Reports:
    """The plugin that keeps the reports of the test that runs."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._kept: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a report, unless it is of a setup or teardown in which nothing happened."""
        if report.when == "call" or not report.passed or report.duration > _SLOW_STEP_SECONDS:
            self._kept.append(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))

    def taken(self) -> list[dict[str, Any]]:
        """Return the reports since the last call."""
        kept, self._kept = self._kept, []
        return kept


def _be(
    number: int, parent: int, config: pytest.Config, items: Sequence[pytest.Item], connection: Connection
) -> NoReturn:
    """Run the tests that the first process sends, report them, and end the process."""
    code = 1
    try:
        atexit._clear()
        end_with_parent(parent)
        leave_run()
        _take_own_files(number, config)
        reports = _Reports(config)
        config.pluginmanager.register(reports)
        try:
            _run(items, connection, reports)
        finally:
            ignore_stops()
            items[0].session._setupstate.teardown_exact(None)
        code = 0
    except (BrokenPipeError, ConnectionResetError, EOFError, KeyboardInterrupt):
        pass  # the first process has stopped, and knows why
    except BaseException:  # noqa: BLE001 - nothing may return to the code of the first process
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        os._exit(code)


def _take_own_files(number: int, config: pytest.Config) -> None:
    """Let this process capture output apart from the others, print nothing, and have its own temporary folders."""
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    capture.suspend_global_capture()
    _LEFT_OPEN.append(capture._global_capturing)
    capture._global_capturing = None
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    capture.start_global_capturing()
    capture.suspend_global_capture()
    factory = _temporary(config)
    factory._given_basetemp = factory.getbasetemp() / str(number)
    factory._basetemp = None


def _run(items: Sequence[pytest.Item], connection: Connection, reports: _Reports) -> None:
    waiting: deque[int] = deque(connection.recv())
    more = bool(waiting)
    while waiting:
        item = items[waiting.popleft()]
        if more and not waiting:
            waiting.extend(following := connection.recv())
            more = bool(following)
        following_item = items[waiting[0]] if waiting else None
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following_item)
        connection.send(reports.taken())
