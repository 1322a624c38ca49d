"""`esker service`: reversible, with the settings that held, and honest where no manager of services runs.

The managers are programs on PATH that note how they are called; `systemd-analyze` is the real one.
"""

import json
import os
import plistlib
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from esker.server.cli.service_files import environment_file, kept_environment, property_list, unit
from esker.server.cli.service_managers import Launchd, ServiceState
from esker.server.core.errors import Misconfigured, Unavailable
from tests.support.processes import esker

SECRET = 'sk-ant-"odd"-$HOME-`id`-\\-100%'
_PROGRAM = """#!/bin/sh
echo "$(basename "$0") $*" >> "{calls}"
cat "{answers}/$(basename "$0")" 2>/dev/null
exit {code}
"""


class Machine:
    """A home, and programs that stand for the managers of services."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.programs = folder / "programs"
        self.calls_file = folder / "calls"
        for each in (self.home, self.programs, folder / "answers"):
            each.mkdir()
        self.answers = folder / "answers"
        self.has("systemctl")

    def has(self, program: str, *, code: int = 0, says: str = "") -> None:
        """Put a program on PATH that notes its calls."""
        path = self.programs / program
        path.write_text(_PROGRAM.format(calls=self.calls_file, answers=self.answers, code=code))
        path.chmod(0o755)
        (self.answers / program).write_text(says)

    @property
    def calls(self) -> list[str]:
        """The calls since the last look."""
        found = self.calls_file.read_text().splitlines() if self.calls_file.exists() else []
        self.calls_file.unlink(missing_ok=True)
        return [call for call in found if "show-environment" not in call]

    @property
    def path(self) -> str:
        """PATH with the programs first."""
        return f"{self.programs}:/usr/bin:/bin"

    def files(self) -> dict[str, str]:
        """Return the files of the home, and their modes."""
        found = (path for path in self.home.rglob("*") if path.is_file())
        return {str(path.relative_to(self.home)): oct(path.stat().st_mode & 0o777) for path in found}

    def run(self, *arguments: str, **more: str) -> Any:
        """Run a verb of the service with --json, and return what it says."""
        environment = {"HOME": str(self.home), "PATH": self.path, "ESKER_STATE_DIR": str(self.home / "state"), **more}
        return json.loads(esker("service", *arguments, "--json", **environment).stdout)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine on which systemd runs, as far as its programs tell."""
    return Machine(tmp_path)


UNIT, ENVIRONMENT = ".config/systemd/user/esker.service", ".config/esker/service.env"


def test_an_installed_service_has_the_settings_that_held_and_leaves_nothing_behind(machine: Machine) -> None:
    data = machine.home / "data"
    said = machine.run(
        "install", "--data-dir", str(data), "--port", "9001", ESKER_LLM_API_KEY=SECRET, SECRET_OF="others"
    )
    assert said["installed"] == [str(machine.home / ENVIRONMENT), str(machine.home / UNIT)]
    assert machine.files() == {UNIT: "0o600", ENVIRONMENT: "0o600"}
    assert SECRET not in (machine.home / UNIT).read_text()
    # A shell reads such a file as systemd does.
    printed = subprocess.check_output(
        ["/bin/sh", "-c", 'set -a; . "$1"; exec env', "sh", str(machine.home / ENVIRONMENT)], env={}, text=True
    ).splitlines()
    assert {f"ESKER_LLM_API_KEY={SECRET}", f"ESKER_DATA_DIR={data}", "ESKER_PORT=9001"} < set(printed)
    assert not any("others" in line for line in printed)
    assert machine.calls == [
        f"systemctl --user {call}" for call in ("daemon-reload", "enable esker.service", "restart esker.service")
    ]
    assert "Stop it first" not in str(machine.run("install", ESKER_PORT="9002"))
    assert 'ESKER_PORT="9002"' in (machine.home / ENVIRONMENT).read_text()
    machine.run("uninstall")
    assert machine.files() == {}
    assert "systemctl --user disable --now esker.service" in machine.calls


def test_a_service_is_started_stopped_and_shown(machine: Machine) -> None:
    assert "not installed" in machine.run("uninstall")["error"]
    assert "No service is installed" in machine.run("start")["error"]
    machine.run("install")
    machine.has("systemctl", says="ActiveState=active\nMainPID=4242\n")
    shown = machine.run("status", ESKER_URL="http://127.0.0.1:1")
    assert {"installed": True, "running": True, "pid": 4242, "answers": False}.items() <= shown.items()
    machine.calls  # noqa: B018 - forget those before
    machine.run("stop")
    machine.run("start")
    verbs = [call.split()[2] for call in machine.calls]
    assert verbs == ["show", "stop", "show", "start"]
    machine.has("journalctl", says="one\ntwo\n")
    assert machine.run("logs", "-n", "2") == {"source": "journalctl", "lines": ["one", "two"]}
    assert "--lines 2" in machine.calls[-1]


def test_where_systemd_does_not_run_nothing_is_written_and_the_way_out_is_named(machine: Machine) -> None:
    machine.has("systemctl", code=1)
    said = machine.run("install")
    assert "systemd does not run for this user" in said["error"]
    assert "container" in said["hint"]
    assert "autostart" in said["hint"]
    (machine.programs / "systemctl").unlink()
    empty = str(machine.programs)
    assert "there is no systemctl here" in machine.run("install", PATH=empty)["error"]
    assert machine.files() == {}


def test_a_unit_that_somebody_else_wrote_stays_as_it_is(machine: Machine) -> None:
    (machine.home / UNIT).parent.mkdir(parents=True)
    (machine.home / UNIT).write_text("mine\n")
    assert "was not written by Esker" in machine.run("install")["error"]
    assert not machine.run("status")["installed"]
    for verb in ("stop", "uninstall"):
        assert "error" in machine.run(verb, ESKER_DATA_DIR=str(machine.home / "data"))
    assert ((machine.home / UNIT).read_text(), machine.calls) == ("mine\n", [])


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_systemd_accepts_the_unit_whatever_the_paths_are(tmp_path: Path) -> None:
    folder = tmp_path / "a folder, 100%h; #1 (größer)"
    folder.mkdir()
    (folder / "python").symlink_to(sys.executable)
    written = tmp_path / "esker.service"
    written.write_text(unit([str(folder / "python"), "-P", "-m", "esker", "serve"], folder / "service.env"))
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(written)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if "esker.service" in line]) == (0, [])


def test_values_that_a_file_of_variables_cannot_hold_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="ESKER_KEY contains a line break"):
        kept_environment({"ESKER_KEY": "one\nPATH=/evil"}, tmp_path, tmp_path)
    with pytest.raises(Misconfigured, match="dollar"):
        unit(["/opt/$HOME/python"], tmp_path / "service.env")
    with pytest.raises(Misconfigured, match="quote"):
        unit(['/opt/"/python'], tmp_path / "service.env")
    assert environment_file({"A": "b"}).endswith('\nA="b"\n')
    for no_text in ("/b\udcff", "\ufffe"):
        with pytest.raises(Misconfigured, match="PATH is not UTF-8"):
            environment_file({"PATH": no_text})
        with pytest.raises(Misconfigured, match="PATH is not UTF-8"):
            property_list(["x"], {"PATH": no_text}, Path("/log"))
    with pytest.raises(Misconfigured, match="UTF-8"):
        unit(["/opt/python"], Path("/b\udcff"))


def test_a_service_is_not_installed_where_commands_would_not_find_it(machine: Machine) -> None:
    refused = machine.run("install", "--dry-run", "--port", "9002", ESKER_URL="http://127.0.0.1:9001")
    assert "--port 9001" in refused["hint"]
    assert "files" in machine.run("install", "--dry-run", "--port", "9001", ESKER_URL="http://127.0.0.1:9001")


def test_the_files_are_in_the_home_if_the_folder_of_settings_is_not_absolute(machine: Machine) -> None:
    assert [*machine.run("install", "--dry-run", XDG_CONFIG_HOME="here")["files"]] == [
        str(machine.home / ENVIRONMENT),
        str(machine.home / UNIT),
    ]


def test_on_macos_the_agent_of_launchd_has_the_settings_and_is_closed_to_others(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(machine.home))
    monkeypatch.setenv("PATH", machine.path)
    machine.has("launchctl", says="gui = {\n\tstate = running\n\tpid = 77\n\tstate = active\n}\n")
    launchd = Launchd(machine.home / "state")
    launchd.require()
    launchd.install(launchd.files(["/opt/python", "serve"], {"ESKER_KEY": SECRET}))
    agent = machine.home / "Library/LaunchAgents/esker.plist"
    assert (agent.stat().st_mode & 0o777, list(machine.files())) == (0o600, [str(agent.relative_to(machine.home))])
    read = plistlib.loads(agent.read_bytes())
    assert (read["EnvironmentVariables"], read["KeepAlive"]) == ({"ESKER_KEY": SECRET}, True)
    assert launchd.state() == ServiceState(installed=True, running=True, pid=77)
    assert launchd.uninstall() == [agent]
    assert machine.files() == {}
    domain = f"gui/{os.getuid()}"
    changes = [call for call in machine.calls if " print " not in call]
    assert changes == [
        f"launchctl bootout {domain}/esker",
        f"launchctl bootstrap {domain} {agent}",
        f"launchctl bootout {domain}/esker",
    ]
    machine.has("launchctl", code=1)
    with pytest.raises(Unavailable, match="launchd does not run for this user"):
        launchd.require()
    assert property_list(["x"], {}, Path("/log")).startswith("<?xml")


def test_a_server_that_hooks_may_start_is_started_and_stopped_by_hand(machine: Machine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    more = {"ESKER_URL": f"http://127.0.0.1:{port}", "ESKER_EMBEDDER": "none", "PATH": os.environ["PATH"]}
    kept = Path(machine.run("autostart", "on", "--data-dir", str(machine.home / "data"), **more)["file"])
    assert kept.stat().st_mode & 0o777 == 0o600
    more |= {"ESKER_DATA_DIR": str(machine.home / "data")}
    try:
        assert machine.run("start", **more) == {"started": True}
        assert machine.run("status", **more)["answers"]
        assert any("Esker listens" in line for line in machine.run("logs", **more)["lines"])
    finally:
        stopped = machine.run("stop", **more)
    assert stopped == {"stopped": True}
    assert "No server runs" in machine.run("stop", **more)["error"]
    more["ESKER_DATA_DIR"] = "/proc/none"
    machine.run("autostart", "on", **more)
    for _ in range(2):
        assert "No server answers" in machine.run("start", **more)["error"], "a start by hand is tried again"
    assert "ESKER_URL is" in machine.run("start", **{**more, "ESKER_URL": "http://127.0.0.1:1"})["error"]
    machine.run("autostart", "off", **more)
    assert "No service is installed" in machine.run("start", **more)["error"]
    assert "not on this machine" in machine.run("autostart", "on", ESKER_URL="https://memory.example")["error"]
