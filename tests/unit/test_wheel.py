"""The installed wheel: one importable name, all of its files, and no link."""

import json
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.support.processes import ROOT, environment

BUILD = "import sys, setuptools.build_meta as b; b.build_wheel(sys.argv[1])"
FOLDERS = {"esker": "esker", "server": "esker/server", "migrations": "esker/migrations"}
FOLDERS |= {"embedding_worker": "esker/embedding_worker"}


@pytest.fixture(scope="module")
def checkout() -> set[str]:
    """The tracked files of git, by their installed names."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", *FOLDERS], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    files = {Path(name) for name in listed if name and not (ROOT / name).is_symlink()}
    return {str(FOLDERS[file.parts[0]] / file.relative_to(file.parts[0])) for file in files}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout, so that a build leaves nothing here."""
    copy = tmp_path_factory.mktemp("checkout")
    files = ("pyproject.toml", "README.md", "LICENSE", "clients/python")
    listed = subprocess.run(["git", "ls-files", "-z", *FOLDERS, *files], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink():
            target.symlink_to((ROOT / name).readlink())
        else:
            target.write_bytes((ROOT / name).read_bytes())
    return copy


@pytest.fixture(scope="module")
def wheel(copy: Path) -> zipfile.ZipFile:
    """The wheel of Esker."""
    return built(copy)


def built(project: Path) -> zipfile.ZipFile:
    """Build the wheel of a project."""
    command = [sys.executable, "-c", BUILD, str(project / "dist")]
    subprocess.run(command, cwd=project, env=environment(), capture_output=True, check=True)
    [wheel] = (project / "dist").glob("*.whl")
    return zipfile.ZipFile(wheel)


def entries(wheel: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the files of a wheel but its metadata."""
    return [entry for entry in wheel.infolist() if ".dist-info/" not in entry.filename]


def test_everything_that_is_installed_is_below_one_name(wheel: zipfile.ZipFile) -> None:
    assert {entry.filename.split("/")[0] for entry in entries(wheel)} == {"esker"}
    [top_level] = [name for name in wheel.namelist() if name.endswith("top_level.txt")]
    assert wheel.read(top_level).decode().split() == ["esker"]


def test_every_file_of_the_packages_is_installed(wheel: zipfile.ZipFile, checkout: set[str]) -> None:
    assert {entry.filename for entry in entries(wheel)} == checkout
    assert {Path(name).suffix for name in checkout} >= {".py", ".sql", ".md", ".jsonl", ".ts", ".typed"}


def test_files_are_installed_and_not_links(wheel: zipfile.ZipFile) -> None:
    kinds: set[Any] = {entry.external_attr >> 28 for entry in entries(wheel)}
    assert kinds == {0o10}, "all are regular files"


def test_the_command_esker_is_installed(wheel: zipfile.ZipFile) -> None:
    [scripts] = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    assert "esker = esker.server.cli.entry:run" in wheel.read(scripts).decode()


# Imports the client where nothing else than its own packages is installed, and no module that Windows lacks.
_CLIENT_ALONE = """
import json, sys
allowed, folder = set(json.loads(sys.argv[1])), sys.argv[2]
class Blocker:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top.startswith("_sysconfigdata"):
            return
        if top in ("fcntl", "grp", "pwd", "resource", "termios") or top not in sys.stdlib_module_names | allowed:
            raise ModuleNotFoundError(f"{name} is not installed", name=name)
sys.meta_path.insert(0, Blocker())
sys.path.insert(0, folder)
import esker
from esker import Esker, Message, Session
from esker.server.core.errors import EskerError
print(esker.__file__, Esker("http://127.0.0.1:1", "key").status.__name__)
"""


def test_the_client_alone_needs_two_packages_and_no_posix(copy: Path, tmp_path: Path) -> None:
    project = tomllib.loads((copy / "clients/python/pyproject.toml").read_text())["project"]
    with built(copy / "clients/python") as wheel:
        wheel.extractall(tmp_path)
    allowed = {"esker"}
    for requirement in project["dependencies"]:
        allowed |= needed(requirement)
    command = [sys.executable, "-P", "-c", _CLIENT_ALONE, json.dumps(sorted(allowed)), str(tmp_path)]
    done = subprocess.run(command, env={"HOME": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.stdout == f"{tmp_path / 'esker' / '__init__.py'} status\n", done.stderr


def test_the_client_alone_asks_for_the_versions_that_esker_asks_for(copy: Path) -> None:
    whole, client = (
        {*tomllib.loads((copy / folder / "pyproject.toml").read_text())["project"]["dependencies"]}
        for folder in (".", "clients/python")
    )
    assert client < whole


def needed(requirement: str) -> set[str]:
    """Return the importable names of a requirement and of all that it needs on this system without an extra."""
    wanted = Requirement(requirement)
    if wanted.marker and not wanted.marker.evaluate({"extra": ""}):
        return set()
    names = {wanted.name.lower().replace("-", "_")}
    return names.union(*map(needed, requires(wanted.name) or ()))
