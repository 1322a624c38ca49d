"""A child process runs our module, whatever is in the working directory."""

import subprocess
from pathlib import Path

import pytest

from esker.server.core.child_command import child_command


@pytest.mark.parametrize("name", ["esker", "json"])
def test_a_child_imports_nothing_from_the_working_directory(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.py").write_text("raise SystemExit('the working directory was imported')")
    done = subprocess.run(
        child_command("esker", "--version"), cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("esker ")
