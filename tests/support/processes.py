"""Esker as processes: a server, a worker, a command."""

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil

from esker.server.core.announcement import read_announcement
from esker.server.core.errors import Unavailable
from tests.support.forks import Forked, run_forked
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).parents[2]


def environment(**more: str) -> dict[str, str]:
    """Return an environment with nothing of Esker in it but `more`, and without an embedder to load.

    A command begins with no state of its own, unless `more` says where it is. The size of a terminal, which the line
    editor of a test process has set, is of no pipe.
    """
    other = ("ESKER_", "ANTHROPIC_", "COLUMNS", "LINES")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(other)}
    state = str(_states() / uuid4().hex)
    return kept | {"ESKER_EMBEDDER": "none", "ESKER_LOG_LEVEL": "warning", "ESKER_STATE_DIR": state} | more


@cache
def _states() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="esker-test-state-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def esker(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return esker_in(ROOT, *arguments, **more)


def esker_in(directory: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, in a directory."""
    return run_forked(arguments, directory, environment(PYTHONPATH=str(ROOT), **more), timeout=PATIENCE)


def esker_alone(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in an interpreter that starts for it alone, as people do."""
    command = [sys.executable, "-P", "-m", "esker", *arguments]
    there = environment(**more)
    return subprocess.run(command, cwd=ROOT, env=there, capture_output=True, text=True, timeout=PATIENCE, check=False)


@contextmanager
def serve(*arguments: str, **more: str) -> Generator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Run `esker serve` while the block runs; yield the process and what it says when it is ready."""
    command = [sys.executable, "-P", "-m", "esker", "serve", "--port", "0", "--json", *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(**more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process, ready(process)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.communicate(timeout=PATIENCE)


@contextmanager
def served(*arguments: str, **more: str) -> Generator[tuple[Forked, dict[str, Any]]]:
    """Run `esker serve` while the block runs, forked; yield the process and what it says when it is ready."""
    reading, writing = os.pipe()
    command = ["serve", "--port", "0", "--json", *arguments]
    with open(reading) as out, tempfile.TemporaryFile() as err, open(os.devnull) as nothing:
        process = Forked(command, ROOT, environment(**more), [nothing.fileno(), writing, err.fileno()])
        os.close(writing)
        try:
            try:
                said = read_announcement(out)
            except Unavailable as error:
                err.seek(0)
                raise RuntimeError(f"{error} {err.read().decode()}") from error
            yield process, said
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE)


def ready(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return a server's announcement that it is ready."""
    assert process.stdout is not None
    try:
        return read_announcement(process.stdout)
    except Unavailable as error:
        raise RuntimeError(f"{error} {process.communicate()}") from error


def using(directory: Path) -> list[psutil.Process]:
    """Return the living processes that have something to do with a data directory."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
            if str(directory) in words and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found
