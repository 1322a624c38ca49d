"""Run a program with text on its standard input, within limits, and end everything that it started."""

import os
import selectors
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

MOST_OUTPUT_BYTES = 16 * 1024 * 1024
"""Bytes of standard output that a program may write."""
_KEPT_ERROR_BYTES = 64 * 1024
_CHUNK = 65_536
# Seconds between two looks at whether the program has ended or is to be stopped.
_LOOK_SECONDS = 0.1
# Seconds that output is read on after the program has ended: what it started may hold the pipe open.
_REST_SECONDS = 1.0
_NICENESS = "10"


class TooMuchOutput(Exception):
    """The program wrote more than it may."""


class Stopped(Exception):
    """The program was stopped by the caller."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The end of a program. `error` is the end of its standard error."""

    code: int
    output: str
    error: str


def run(command: Sequence[str], text: str, folder: Path, environ: Mapping[str, str], stop: threading.Event) -> Ran:
    """Run a command at low priority in a session of its own, and return when it has ended.

    At the end nothing that it started runs any longer. Raises OSError if it cannot be started, TooMuchOutput, and
    Stopped once `stop` is set.
    """
    nice = shutil.which("nice")
    process = subprocess.Popen(
        [nice, "-n", _NICENESS, *command] if nice else list(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=dict(environ),
        start_new_session=True,
    )
    try:
        output, error = _Exchange(process, text.encode("utf-8", "replace")).until_the_end(stop)
        return Ran(process.wait(), output.decode("utf-8", "replace"), error.decode("utf-8", "replace"))
    finally:
        _end(process)


class _Exchange:
    """Writes a program's input and reads its output, whichever is possible."""

    def __init__(self, process: subprocess.Popen[bytes], text: bytes) -> None:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self._process = process
        self._text = memoryview(text)
        self._read = {process.stdout: bytearray(), process.stderr: bytearray()}
        self._pipes = selectors.DefaultSelector()
        for pipe in self._read:
            os.set_blocking(pipe.fileno(), False)
            self._pipes.register(pipe, selectors.EVENT_READ)
        os.set_blocking(process.stdin.fileno(), False)
        self._pipes.register(process.stdin, selectors.EVENT_WRITE)

    def until_the_end(self, stop: threading.Event) -> tuple[bytes, bytes]:
        """Return the output and the end of the error output. Raises TooMuchOutput, Stopped."""
        ended: float | None = None
        with self._pipes:
            while self._pipes.get_map() and (ended is None or time.monotonic() < ended + _REST_SECONDS):
                if stop.is_set():
                    raise Stopped
                for key, _ in self._pipes.select(_LOOK_SECONDS):
                    self._move(key)
                if ended is None and self._process.poll() is not None:
                    ended = time.monotonic()
        while self._process.poll() is None:
            # It has closed its pipes and runs on.
            if stop.wait(_LOOK_SECONDS):
                raise Stopped
        output, error = self._read.values()
        return bytes(output), bytes(error)

    def _move(self, key: selectors.SelectorKey) -> None:
        if key.fileobj is self._process.stdin:
            self._write()
            return
        pipe = self._process.stdout if key.fileobj is self._process.stdout else self._process.stderr
        assert pipe
        chunk = pipe.read(_CHUNK)
        if chunk is None:
            return
        if not chunk:
            self._pipes.unregister(pipe)
            return
        read = self._read[pipe]
        read += chunk
        if pipe is self._process.stderr:
            del read[:-_KEPT_ERROR_BYTES]
        elif len(read) > MOST_OUTPUT_BYTES:
            raise TooMuchOutput

    def _write(self) -> None:
        stdin = self._process.stdin
        assert stdin
        try:
            self._text = self._text[os.write(stdin.fileno(), self._text[:_CHUNK]) :] if self._text else self._text
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._text = memoryview(b"")
        if not self._text:
            self._pipes.unregister(stdin)
            stdin.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the program's process group, and what left it, and wait for the program."""
    strays = _descendants(process.pid)
    _kill_group(process.pid)
    for stray in strays:
        try:
            stray.kill()
        except psutil.Error:
            continue
    process.wait()
    psutil.wait_procs(strays, timeout=_REST_SECONDS)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            try:
                pipe.close()
            except BrokenPipeError:
                continue


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _kill_group(pid: int) -> None:
    # The leader of the group is not reaped yet, or was, and then its children keep the id of the group in use.
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
