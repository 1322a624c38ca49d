"""The installed wheel: one importable name, all of its files, and no link."""

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

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
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel of a copy of the checkout, so that the build leaves nothing here."""
    copy = tmp_path_factory.mktemp("checkout")
    archive = subprocess.run(["git", "ls-files", "-z", *FOLDERS], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, archive.decode().split("\0")):
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink():
            target.symlink_to((ROOT / name).readlink())
        else:
            target.write_bytes((ROOT / name).read_bytes())
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (copy / name).write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-c", BUILD, str(copy / "dist")]
    subprocess.run(command, cwd=copy, env=environment(), capture_output=True, check=True)
    [built] = (copy / "dist").glob("*.whl")
    return zipfile.ZipFile(built)


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
