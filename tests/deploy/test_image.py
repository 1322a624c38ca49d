"""The image without an engine: the steps of the Dockerfile, with the files that they copy, in a clean environment."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import ROOT, environment
from tests.support.waiting import PATIENCE

_TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
STEPS = [tuple(line.split(maxsplit=1)) for line in _TEXT.splitlines() if line and not line.startswith("#")]
_USER = 10_001


def copied() -> list[tuple[str, str]]:
    """Return the files and folders that are copied, each with its place in the image."""
    found: list[tuple[str, str]] = []
    for name, arguments in STEPS:
        if name == "COPY":
            *sources, target = arguments.split()
            found += [(source, f"{target}{source}" if target.endswith("/") else target) for source in sources]
    return found


def test_all_that_is_copied_is_tracked_and_not_left_out_of_the_context() -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()
    for source, _ in copied():
        tracked = subprocess.run(["git", "ls-files", source], cwd=ROOT, capture_output=True, text=True, check=True)
        assert tracked.stdout, source
        assert source not in ignored


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders to another user")
def test_the_user_of_the_image_can_make_every_folder_that_esker_uses(tmp_path: Path) -> None:
    [made] = re.findall(r"install -d [^&\n]*", _TEXT)
    made = made.replace("-o esker -g esker", f"-o {_USER} -g {_USER}")
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, _USER, _USER)
    subprocess.run(shlex.split(made.replace("/home/esker", str(home))), cwd=tmp_path, check=True)
    assert [*tmp_path.iterdir()] == [home]
    for folder in (tmp_path, *list(tmp_path.parents)[:2]):
        folder.chmod(0o755)
    wanted = [str(home / name) for name in (".local/share/esker/postgres", ".local/share/esker-demo", ".local/state")]
    subprocess.run(["mkdir", *wanted], user=_USER, group=_USER, check=True)


@pytest.mark.slow
def test_the_steps_make_an_esker_that_runs(tmp_path: Path) -> None:
    place = tmp_path / "app"
    for source, target in copied():
        (place / target).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, place / target, symlinks=True)
        else:
            shutil.copy(ROOT / source, place / target)
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    there = environment(PATH=f"{tmp_path / 'venv/bin'}:/usr/bin:/bin", HOME=str(tmp_path))
    for name, arguments in STEPS:
        if name == "RUN" and arguments.startswith("pip "):
            subprocess.run(["/bin/sh", "-ec", arguments], cwd=place, env=there, check=True, timeout=PATIENCE)
    shutil.rmtree(place)
    done = subprocess.run(["esker", "demo"], cwd=tmp_path, env=there, capture_output=True, text=True, check=False)
    assert (done.returncode, "saved" in done.stdout) == (0, True), done.stderr
