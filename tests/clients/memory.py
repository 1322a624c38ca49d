"""The Esker server that the clients use, as a process that can be away, hang and come back."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from esker.server.agents.api import Api
from esker.server.core.announcement import read_announcement
from esker.server.core.errors import EskerError
from tests.support.processes import environment

PROGRAM = Path(sys.executable).with_name("esker")
# Seconds that a hook's background process, which outlives its client, may need on a busy machine.
_SENDING_SECONDS = 60
_STOP_SECONDS = 60


class MemoryServer:
    """`esker serve` with a data directory and a port of its own."""

    def __init__(self, folder: Path, **more: str) -> None:
        """`more` are settings."""
        self.folder = folder
        self.port = _free_port()
        self._settings = more
        self._process: subprocess.Popen[str] | None = None
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        folders = {"ESKER_DATA_DIR": str(self.folder / "data"), "ESKER_STATE_DIR": str(self.folder / "state")}
        environ = environment(**folders, **self._settings)
        command = [str(PROGRAM), "serve", "--port", str(self.port), "--json"]
        with (self.folder / "server.log").open("a") as log:
            self._process = subprocess.Popen(
                command, env=environ, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
            )
        assert self._process.stdout is not None
        read_announcement(self._process.stdout)

    def stop(self) -> None:
        """End it and its database."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGCONT)
        self._process.send_signal(signal.SIGINT)
        self._process.communicate(timeout=_STOP_SECONDS)
        self._process = None

    def hang(self) -> None:
        """Let it accept connections and answer none."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def wake(self) -> None:
        """Let it answer again."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def remember(self, content: str, project: str) -> None:
        """Pin a memory."""
        Api(self.url).post("/v1/memories", {"content": content, "priority": "high", "project": project})

    def observe(self, session: str) -> None:
        """Observe a session, and wait for it."""
        Api(self.url).post(f"/v1/sessions/{session}/observe?wait=true", {})

    def sessions(self, client: str) -> list[dict[str, Any]]:
        """Return the sessions of a client, each with its messages, the latest first."""
        api = Api(self.url)
        found = [each for each in api.get("/v1/sessions", limit=100)["sessions"] if each["client"] == client]
        for each in found:
            each["said"] = api.get(f"/v1/sessions/{each['id']}/messages", limit=500)["messages"]
        return found

    def wait_for(self, client: str, holds: Callable[[list[dict[str, Any]]], bool]) -> bool:
        """Return whether something holds of a client's sessions, at once or after its hooks have sent everything."""
        until = time.monotonic() + _SENDING_SECONDS
        while time.monotonic() < until:
            try:
                if holds(self.sessions(client)):
                    return True
            except EskerError:
                pass
            time.sleep(0.5)
        return False


def command(environ: Mapping[str, str], *arguments: str) -> None:
    """Run `esker` in a client's home. Raises CalledProcessError."""
    subprocess.run([str(PROGRAM), *arguments], env=environ, check=True, capture_output=True, text=True)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
