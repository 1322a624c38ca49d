"""The server process of an embedded Postgres: found, started and stopped.

`pg_ctl` is not used: it takes any process with the number in `postmaster.pid` for the server (after a crash, or in a
copied directory, that is another program) and passes paths to a shell.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from esker.server.core.errors import Misconfigured, Unavailable
from esker.server.db import programs
from esker.server.db.start_failures import start_failure

_START_SECONDS = 120.0  # recovery after a crash takes long
_STOP_SECONDS = 60.0
# A new server refuses to start with this message until the helpers of a killed one have ended.
_STILL_ENDING = "still in use"
# A server looks for its pid file every minute and ends when the file was removed.
_PATIENCE_SECONDS = 75.0
_PAUSE_SECONDS = 0.02
_PAUSE_BETWEEN_STARTS_SECONDS = 0.25
_STATUS_LINE = 7
_READ_BYTES = 20_000
_LONGEST_LOG_BYTES = 16 * 1024 * 1024


def find(directory: Path) -> psutil.Process | None:
    """Return the Postgres that runs on this directory, or None."""
    try:
        process = psutil.Process(int(_pid_lines(directory)[0]))
        # Its working directory is its data directory; that of a zombie cannot be read.
        ours = process.name().startswith("postgres") and Path(process.cwd()).samefile(directory)
        return process if ours and process.status() != psutil.STATUS_ZOMBIE else None
    except (OSError, ValueError, IndexError, psutil.Error):
        return None


def start(
    directory: Path, sockets: Path, settings: Mapping[str, str], *, seconds: float = _START_SECONDS
) -> subprocess.Popen[bytes]:
    """Start Postgres and return when it is ready. The caller holds the data directory, and no Postgres runs on it.

    `seconds`: how long it may take to recover.

    Raises Unavailable when it does not start.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        rotate_log(directory)
        # Left by a server that has ended, or copied with the directory.
        _remove(directory / "postmaster.pid")
        _remove(sockets / ".s.PGSQL.5432.lock")
        log = directory / "log"
        logged = log.stat().st_size if log.exists() else 0
        process = _launch(directory, sockets, settings)
        if _answers(process, directory, seconds):
            return process
        failure = start_failure(_lines_since(log, logged))
        if _STILL_ENDING not in failure.reason or time.monotonic() > deadline:
            hint = " ".join(filter(None, (failure.hint, f"Its log is {log}.")))
            raise Unavailable(f"Postgres does not start: {failure.reason}", hint=hint)
        time.sleep(_PAUSE_BETWEEN_STARTS_SECONDS)


def rotate_log(directory: Path) -> None:
    """Begin the server's log anew if it has become long; one older part is kept.

    The server has the file open for appending and so goes on at its new end. Lines of the moment between are lost.
    """
    log = directory / "log"
    try:
        if log.stat().st_size < _LONGEST_LOG_BYTES:
            return
        with open(former_log(log), "wb", opener=_private) as former, log.open("rb") as present:
            shutil.copyfileobj(present, former)
    except FileNotFoundError:
        return
    except OSError:
        pass  # on a full disk, the space counts more than the former part
    with suppress(OSError):
        os.truncate(log, 0)


def former_log(log: Path) -> Path:
    """Return the path of the older part of a log."""
    return log.with_name(f"{log.name}.1")


def _remove(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise Misconfigured(f"{file} cannot be removed: {error.strerror}.", hint="Remove it by hand.") from error


def _launch(directory: Path, sockets: Path, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
    options = {**settings, "listen_addresses": "", "unix_socket_directories": _quoted(sockets)}
    flags = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    with open(directory / "log", "ab", opener=_private) as log:
        # A base backup reads every file of the directory.
        os.fchown(log.fileno(), programs.postgres_uid(), -1)
        return programs.start([str(programs.BINARIES / "postgres"), "-D", str(directory), *flags], log)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _quoted(directory: Path) -> str:
    """Return a directory quoted for a list in Postgres's settings."""
    return '"' + str(directory).replace('"', '""') + '"'


def _answers(process: subprocess.Popen[bytes], directory: Path, seconds: float) -> bool:
    """Wait until a started server is ready; return False when it has ended instead."""
    deadline = time.monotonic() + seconds
    while process.poll() is None:
        try:
            lines = _pid_lines(directory)
            if int(lines[0]) == process.pid and lines[_STATUS_LINE].startswith("ready"):
                return True
        except (OSError, ValueError, IndexError):
            pass  # the file is not complete yet
        if time.monotonic() > deadline:
            process.terminate()
            process.wait()
        time.sleep(_PAUSE_SECONDS)
    return False


def stop(directory: Path) -> None:
    """Stop the Postgres of this directory, if one runs; clients are disconnected, committed data is safe.

    Raises Unavailable when it does not end.
    """
    if running := find(directory):
        running.send_signal(signal.SIGINT)
    deadline = time.monotonic() + _STOP_SECONDS
    while find(directory):
        if time.monotonic() > deadline:
            raise Unavailable("Postgres does not stop.", hint=f"Its log is {directory / 'log'}.")
        time.sleep(_PAUSE_SECONDS)


def _pid_lines(directory: Path) -> list[str]:
    return (directory / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()


def _lines_since(log: Path, position: int) -> list[str]:
    """Return the last lines of the server's log that were written after a position in bytes."""
    try:
        with log.open("rb") as file:
            file.seek(max(position, log.stat().st_size - _READ_BYTES))
            return file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ["its log is missing"]
