"""Hooks start a server that does not run, if its user wants that (`esker service autostart on`).

Imports only the standard library: hooks import this module, in the process for which no client waits.
"""

import fcntl
import http.client
import json
import os
import socket
import stat
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from esker.server.core.config.owner_file import write_owner_only
from esker.server.core.errors import Misconfigured

LOG = "server.log"
"""The output of a server that hooks started, in the state directory."""
_FILE, _LOCK, _FAILED = "autostart.json", "autostart.lock", "autostart.failed"
_LONGEST_LOG = 10 * 1024 * 1024
_CONNECT_SECONDS = 1.0
_START_SECONDS = 60.0
"""How long a start keeps other hooks from starting another server; one that takes longer goes on."""
_REST_SECONDS = 300.0
"""How long no hook tries again after a server that did not start: each try would take seconds of the processor."""


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """The command and the environment that start the server which listens at `url`."""

    url: str
    command: list[str]
    environment: dict[str, str]


class Autostart:
    """The command in an owner-only file of the state directory; hooks start the server if there is one."""

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / _FILE
        self.log = state_dir / LOG
        self._lock, self._failed = state_dir / _LOCK, state_dir / _FAILED

    def keep(self, command: ServerCommand) -> None:
        """Have hooks start the server. Raises OSError."""
        write_owner_only(self.path, json.dumps(asdict(command), indent=2) + "\n")
        self._failed.unlink(missing_ok=True)

    def drop(self) -> bool:
        """Have hooks start nothing; return whether they would have. Raises OSError."""
        was_there = self.path.exists()
        self.path.unlink(missing_ok=True)
        return was_there

    def command(self) -> ServerCommand | None:
        """Return the command; None if hooks are to start nothing. Raises Misconfigured."""
        try:
            with self.path.open(encoding="utf-8") as file:
                about = os.fstat(file.fileno())
                if stat.S_IMODE(about.st_mode) & 0o077 or about.st_uid != os.geteuid():
                    raise Misconfigured(f"{self.path} belongs to another user or can be read by one.")
                return ServerCommand(**json.load(file))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, TypeError) as error:
            raise Misconfigured(f"{self.path} cannot be read: {error}.") from error

    def start(self, url: str, *, despite_failure: bool = False) -> bool:
        """Start the server at `url` if nothing listens, and wait for it; return whether this process started one.

        Of many processes at once one starts it, and the others return at once; so do all for a while after a start that
        failed, unless `despite_failure`. Raises Misconfigured, OSError.
        """
        wanted = self.command()
        if wanted is None or wanted.url != url or is_listening(url):
            return False
        with self._alone() as alone:
            # Another process may have started it since.
            if not alone or is_listening(url) or (self._failed_lately() and not despite_failure):
                return False
            process = self._run(wanted)
            deadline = time.monotonic() + _START_SECONDS
            while process.poll() is None and not is_alive(url) and time.monotonic() < deadline:
                time.sleep(0.1)
            if process.poll() is None:
                process.returncode = 0  # avoids a ResourceWarning: the server outlives this process on purpose
            else:
                self._failed.touch()
            return True

    def _run(self, wanted: ServerCommand) -> "subprocess.Popen[bytes]":
        shorten(self.log)
        output = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            return subprocess.Popen(
                wanted.command,
                env=wanted.environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        finally:
            os.close(output)

    def _failed_lately(self) -> bool:
        with suppress(OSError):
            return abs(time.time() - self._failed.stat().st_mtime) < _REST_SECONDS
        return False

    @contextmanager
    def _alone(self) -> Generator[bool]:
        lock = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield True
        except BlockingIOError:
            yield False
        finally:
            os.close(lock)


def is_alive(url: str) -> bool:
    """Return whether a server answers at an address."""
    parts = urlsplit(url)
    connect = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = connect(parts.hostname or "", parts.port, timeout=_CONNECT_SECONDS)
    try:
        connection.request("GET", f"{parts.path.rstrip('/')}/livez")
        return connection.getresponse().status == http.client.OK
    except (OSError, UnicodeError, http.client.HTTPException):  # a name may be too long for IDNA
        return False
    finally:
        connection.close()


def is_listening(url: str) -> bool:
    """Return whether a program listens at an address; a server does so some time before it answers."""
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 80), _CONNECT_SECONDS):
            return True
    except OSError:
        return False


def shorten(log: Path) -> None:
    """Put a long log aside as `….1`, in the place of the one before."""
    with suppress(OSError):
        if log.stat().st_size > _LONGEST_LOG:
            log.replace(log.with_name(f"{log.name}.1"))
