"""Installs the clients from npm into a folder, each in the version that versions.toml names."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

_VERSIONS = Path(__file__).with_name("versions.toml")
_NUMBER = re.compile(r"\d+\.\d+\.\d+")
# A registry that does not answer is asked twice, for half a minute each.
_PATIENCE = ("--fetch-retries=1", "--fetch-timeout=30000")
# Seconds for the largest package over a slow line, and for a client to print its version.
_INSTALL_SECONDS = 900
_VERSION_SECONDS = 120


class CannotInstall(Exception):
    """A client cannot be installed; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package of npm: its version, and the command that it brings."""

    name: str
    version: str
    command: str


@dataclass(frozen=True, slots=True)
class Clients:
    """The folder of the clients, and the directories of their commands."""

    folder: Path
    packages: dict[str, Package]

    def path(self) -> str:
        """Return the PATH on which the clients and their node come first."""
        folders = [str(_commands(self.folder, name)) for name in ("node", *self.packages)]
        return os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)])


def known_clients() -> dict[str, Package]:
    """Return the clients that can be installed."""
    listed = tomllib.loads(_VERSIONS.read_text(encoding="utf-8"))["clients"]
    return {name: Package(each["package"], each["version"], each["command"]) for name, each in listed.items()}


def install(folder: Path, names: list[str]) -> Clients:
    """Install what is missing or has another version. Raises CannotInstall."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = {name: known_clients()[name] for name in names}
    clients = Clients(folder, chosen)
    _require_node(clients)
    for name, package in chosen.items():
        if _version(clients, package.command) != package.version:
            _npm_install(clients, name, f"{package.name}@{package.version}")
        if (found := _version(clients, package.command)) != package.version:
            raise CannotInstall(f"{name} says that it is {found or 'nothing'}, not {package.version}.")
    return clients


def _require_node(clients: Clients) -> None:
    """See to a node that is new enough, from npm if the system's is not."""
    wanted = tomllib.loads(_VERSIONS.read_text(encoding="utf-8"))["node"]
    found = _version(clients, "node")
    if shutil.which("npm") is None or found is None:
        raise CannotInstall("node and npm are not on the PATH; install node 18 or newer with npm, the rest follows.")
    if _parts(found) >= _parts(wanted["at_least"]):
        return
    _npm_install(clients, "node", f"{wanted['package']}@{wanted['version']}")
    found = _version(clients, "node")
    if found is None or _parts(found) < _parts(wanted["at_least"]):
        raise CannotInstall(f"node is {found}, and the clients need {wanted['at_least']} or newer.")


def _npm_install(clients: Clients, name: str, wanted: str) -> None:
    print(f"Installing {wanted} …", file=sys.stderr, flush=True)
    below = clients.folder / "npm" / name
    below.mkdir(parents=True, exist_ok=True)
    (below / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    command = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *_PATIENCE, wanted]
    environ = {**os.environ, "PATH": clients.path()}
    try:
        done = subprocess.run(
            command, cwd=below, env=environ, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise CannotInstall(f"npm did not install {wanted} within {_INSTALL_SECONDS} s.") from error
    if done.returncode:
        raise CannotInstall(f"npm could not install {wanted}: {done.stderr.strip()[-500:]}")


def _version(clients: Clients, command: str) -> str | None:
    """Return the version that a command says, or None if there is no such command."""
    environ = {**os.environ, "PATH": clients.path(), "HOME": str(clients.folder)}
    program = shutil.which(command, path=clients.path())
    if program is None:
        return None
    done = subprocess.run(
        [program, "--version"], env=environ, capture_output=True, text=True, timeout=_VERSION_SECONDS, check=False
    )
    found = _NUMBER.findall(done.stdout)
    return found[-1] if found else None


def _parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _commands(folder: Path, name: str) -> Path:
    return folder / "npm" / name / "node_modules" / ".bin"
