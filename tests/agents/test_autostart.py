"""Hooks start the server when it is not there: once, without keeping an agent waiting, and only if asked to."""

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from esker.server.agents.server_start import Autostart, ServerCommand, is_alive, is_listening
from esker.server.core.errors import Misconfigured
from tests.support.processes import ROOT, environment
from tests.support.waiting import PATIENCE, eventually_here

# Notes its start; listens as soon as there is a file `go`, until there is a file `end`.
_SERVER = """
import os, socket, sys, time
folder, port = sys.argv[1], int(sys.argv[2])
with open(f"{folder}/starts", "a") as starts:
    starts.write(f"{os.getpid()}\\n")
while not os.path.exists(f"{folder}/go"):
    time.sleep(0.02)
with socket.create_server(("127.0.0.1", port), backlog=100) as listener:
    listener.settimeout(0.02)
    while not os.path.exists(f"{folder}/end"):
        try:
            with listener.accept()[0] as client:
                client.settimeout(1)
                client.recv(1000) and client.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\n")
        except OSError:
            pass
"""
_HOOK = "import sys; from pathlib import Path; from esker.server.agents.server_start import Autostart;"
_HOOK += "sys.exit(Autostart(Path(sys.argv[1])).start(sys.argv[2]))"


class Here:
    """A state directory, and a server that hooks may start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state_dir = folder / "state"
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.port = taken.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.autostart = Autostart(self.state_dir)

    def keep(self, program: str = _SERVER) -> None:
        """Have hooks start a program."""
        command = [sys.executable, "-c", program, str(self.folder), str(self.port)]
        self.autostart.keep(ServerCommand(self.url, command, {"PATH": os.environ["PATH"]}))

    @property
    def starts(self) -> list[str]:
        """The process ids of the servers that were started."""
        file = self.folder / "starts"
        return file.read_text().split() if file.exists() else []


@pytest.fixture
def here(tmp_path: Path) -> Here:
    """A machine whose server does not run."""
    return Here(tmp_path)


def test_of_many_hooks_at_once_one_starts_the_server(here: Here) -> None:
    here.keep()
    (here.folder / "go").touch()
    command = [sys.executable, "-c", _HOOK, str(here.state_dir), here.url]
    hooks = [subprocess.Popen(command, cwd=ROOT, env=environment()) for _ in range(6)]
    started = [hook.wait(PATIENCE) for hook in hooks]
    assert (sorted(started), len(here.starts)) == ([0, 0, 0, 0, 0, 1], 1)
    assert not here.autostart.start(here.url), "it answers"
    (here.folder / "end").touch()


def test_a_hook_ends_before_the_server_that_it_starts_is_there(here: Here) -> None:
    here.keep()
    more = {"ESKER_URL": here.url, "ESKER_STATE_DIR": str(here.state_dir), "HOME": str(here.folder)}
    command = [sys.executable, "-m", "esker.server.cli.entry", "hook", "claude-code", "Stop"]
    given = json.dumps({"session_id": "s1", "cwd": str(here.folder), "hook_event_name": "Stop"}).encode()
    done = subprocess.run(command, input=given, cwd=ROOT, env=environment(**more), capture_output=True, check=True)
    assert done.stderr == b""
    eventually_here(lambda: here.starts)
    assert not is_listening(here.url)
    (here.folder / "go").touch()
    eventually_here(lambda: is_alive(here.url))
    (here.folder / "end").touch()


def test_a_server_that_does_not_start_is_not_tried_by_every_hook(here: Here) -> None:
    here.keep("print('no such setting'); raise SystemExit(1)")
    assert here.autostart.start(here.url)
    assert not here.autostart.start(here.url)
    assert here.autostart.log.read_text() == "no such setting\n"
    here.keep()
    (here.folder / "go").touch()
    assert here.autostart.start(here.url), "another setting is tried at once"
    (here.folder / "end").touch()


def test_nothing_is_started_unless_the_user_said_so_and_for_that_address_alone(here: Here) -> None:
    assert not here.autostart.start(here.url)
    here.keep()
    assert not here.autostart.start("http://127.0.0.1:1")
    here.autostart.path.chmod(0o644)
    with pytest.raises(Misconfigured, match="another user"):
        here.autostart.start(here.url)
    assert here.autostart.drop()
    assert (here.autostart.start(here.url), here.starts) == (False, [])


def test_a_server_is_asked_as_its_address_says() -> None:
    """With TLS for https, and below the path of a proxy."""
    asked: list[bytes] = []

    def answer(listener: socket.socket) -> None:
        with listener.accept()[0] as client:
            asked.append(client.recv(1000))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        for scheme in ("http", "https"):
            server = threading.Thread(target=answer, args=(listener,))
            server.start()
            assert not is_alive(f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/memory/")
            server.join()
    assert asked[0].startswith(b"GET /memory/livez ")
    assert asked[1].startswith(b"\x16"), "the first byte of TLS"
    assert not is_alive(f"http://{'a' * 70}.example")
