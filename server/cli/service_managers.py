"""The managers of services of a user: systemd on Linux, launchd on macOS."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from esker.server.agents.server_start import LOG, shorten
from esker.server.cli.service_files import MARK, NAME, environment_file, property_list, unit
from esker.server.core.config.home import expanded
from esker.server.core.config.owner_file import write_owner_only
from esker.server.core.errors import Conflict, Unavailable

_SECONDS = 120.0  # a stop waits until Postgres has written its pages
_WITHOUT = (
    "In a container run `esker serve` as its command. Elsewhere `esker service autostart on` has the hooks of your"
    " agents start the server when it is not there."
)


@dataclass(frozen=True, slots=True)
class ServiceState:
    """Whether a service is installed and runs, and the process id if the manager says it."""

    installed: bool
    running: bool
    pid: int | None = None


class ServiceManager(Protocol):
    """Installs and runs the service of one user."""

    @property
    def name(self) -> str:
        """The name of the program."""
        ...

    def files(self, command: Sequence[str], environment: Mapping[str, str]) -> dict[Path, str]:
        """Return the files of the service with their contents. Raises Misconfigured."""
        ...

    def require(self) -> None:
        """Raise Unavailable unless the manager runs for this user."""
        ...

    def install(self, files: Mapping[Path, str]) -> None:
        """Write the files, which only their owner can read, and start the service, now and at each login."""
        ...

    def uninstall(self) -> list[Path]:
        """Stop the service and delete its files; return those."""
        ...

    def start(self) -> None:
        """Start the installed service."""
        ...

    def stop(self) -> None:
        """Stop the service until the next start or login."""
        ...

    def state(self) -> ServiceState:
        """Return the state of the service, also where the manager does not run."""
        ...

    def log_command(self, lines: int, *, follow: bool) -> list[str] | None:
        """Return the command that shows the last lines of the log; None if the log is a file."""
        ...


class Systemd:
    """systemd, for one user: a unit, and a file with the environment."""

    name = "systemd"

    def __init__(self, environ: Mapping[str, str]) -> None:
        named = Path(environ.get("XDG_CONFIG_HOME", ""))
        # A relative path is to be ignored, and no unit can have one.
        config = named if named.is_absolute() else expanded(Path("~/.config"))
        self._unit = config / "systemd" / "user" / f"{NAME}.service"
        self._environment = config / "esker" / "service.env"

    def files(self, command: Sequence[str], environment: Mapping[str, str]) -> dict[Path, str]:
        return {self._environment: environment_file(environment), self._unit: unit(command, self._environment)}

    def require(self) -> None:
        _run_or_explain(["systemctl", "--user", "show-environment"], "systemd does not run for this user")

    def install(self, files: Mapping[Path, str]) -> None:
        _write(files)
        _systemctl("daemon-reload")
        _systemctl("enable", self._unit.name)
        _systemctl("restart", self._unit.name)

    def uninstall(self) -> list[Path]:
        if _is_ours(self._unit):
            _systemctl("disable", "--now", self._unit.name)
        removed = _remove([self._unit, self._environment])
        _systemctl("daemon-reload")
        return removed

    def start(self) -> None:
        _systemctl("start", self._unit.name)

    def stop(self) -> None:
        _systemctl("stop", self._unit.name)

    def state(self) -> ServiceState:
        if not _is_ours(self._unit):
            return ServiceState(installed=False, running=False)
        try:
            shown = _systemctl("show", self._unit.name, "--property=ActiveState,MainPID")
        except Unavailable:
            return ServiceState(installed=True, running=False)
        values = _values(shown, "=")
        running = values.get("ActiveState") == "active"
        return ServiceState(installed=True, running=running, pid=_pid(values.get("MainPID", "")) if running else None)

    def log_command(self, lines: int, *, follow: bool) -> list[str] | None:
        asked = ["journalctl", "--user", "--unit", self._unit.name, "--lines", str(lines), "--output=cat", "--no-pager"]
        return [*asked, "--follow"] if follow else asked


class Launchd:
    """launchd, for one user: an agent, whose property list has the environment."""

    name = "launchd"

    def __init__(self, state_dir: Path) -> None:
        self._agent = expanded(Path("~/Library/LaunchAgents")) / f"{NAME}.plist"
        self._log = state_dir / LOG
        self._domain = f"gui/{os.getuid()}"
        self._target = f"{self._domain}/{NAME}"

    def files(self, command: Sequence[str], environment: Mapping[str, str]) -> dict[Path, str]:
        return {self._agent: property_list(command, environment, self._log)}

    def require(self) -> None:
        _run_or_explain(["launchctl", "print", self._domain], "launchd does not run for this user")

    def install(self, files: Mapping[Path, str]) -> None:
        _write(files)
        if self.state().running:
            self.stop()
        self.start()

    def uninstall(self) -> list[Path]:
        if self.state().running:
            self.stop()
        return _remove([self._agent])

    def start(self) -> None:
        shorten(self._log)
        self._log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _run_or_explain(["launchctl", "bootstrap", self._domain, str(self._agent)], "launchd did not start the service")

    def stop(self) -> None:
        _run_or_explain(["launchctl", "bootout", self._target], "launchd did not stop the service")

    def state(self) -> ServiceState:
        if not _is_ours(self._agent):
            return ServiceState(installed=False, running=False)
        try:
            shown = _run_or_explain(["launchctl", "print", self._target], "launchd does not know the service")
        except Unavailable:
            return ServiceState(installed=True, running=False)
        values = _values(shown, " = ")
        return ServiceState(installed=True, running=values.get("state") == "running", pid=_pid(values.get("pid", "")))

    def log_command(self, lines: int, *, follow: bool) -> list[str] | None:
        return None


def manager_of(platform: str, environ: Mapping[str, str], state_dir: Path) -> ServiceManager:
    """Return the manager of services of a system, named as in `sys.platform`."""
    return Launchd(state_dir) if platform == "darwin" else Systemd(environ)


def _write(files: Mapping[Path, str]) -> None:
    for path in files:
        if path.exists() and not _is_ours(path):
            raise Conflict(f"{path} exists and was not written by Esker.", hint="Move it away, and try again.")
    for path, text in files.items():
        write_owner_only(path, text)


def _is_ours(path: Path) -> bool:
    """Whether a file is there and was written by `esker service install`."""
    return path.is_file() and MARK in path.read_text(encoding="utf-8", errors="replace")


def _remove(paths: Sequence[Path]) -> list[Path]:
    """Delete the files that Esker wrote, and return them."""
    removed: list[Path] = []
    for path in paths:
        if _is_ours(path):
            path.unlink()
            removed.append(path)
    return removed


def _values(shown: str, sign: str) -> dict[str, str]:
    """Return the first value of each name in lines such as `name = value`."""
    found: dict[str, str] = {}
    for line in shown.splitlines():
        name, _, value = line.strip().partition(sign)
        found.setdefault(name, value)
    return found


def _pid(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and int(text) else None


def _systemctl(*arguments: str) -> str:
    return _run_or_explain(["systemctl", "--user", *arguments], f"`systemctl --user {arguments[0]}` failed")


def _run_or_explain(command: list[str], problem: str) -> str:
    """Run a program, and return its output. Raises Unavailable with the problem and the program's own words."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except FileNotFoundError:
        raise Unavailable(f"{problem}: there is no {command[0]} here.", hint=_WITHOUT) from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{problem}: {command[0]} did not end within {_SECONDS:.0f} s.", hint=_WITHOUT) from None
    if done.returncode:
        said = next(iter(done.stderr.strip().splitlines()), f"exit code {done.returncode}")
        raise Unavailable(f"{problem}: {said.rstrip('.')}.", hint=_WITHOUT)
    return done.stdout
