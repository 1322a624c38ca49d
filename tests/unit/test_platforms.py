"""On a system that cannot run Esker, the first line says so, whatever Python modules the system lacks."""

import subprocess
import sys

import pytest

# The modules that Python has on POSIX alone.
_POSIX = ("fcntl", "grp", "pwd", "resource", "termios")


def on_windows(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a Python that takes itself for that of Windows."""
    missing = "".join(f"sys.modules[{name!r}] = None; " for name in _POSIX)
    code = f"import sys, os; {missing}sys.platform = 'win32'; {program}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("arguments", "code"), [(["demo"], 1), ([], 1), (["hook", "claude-code", "Stop"], 0)])
def test_the_first_line_on_windows_names_wsl(arguments: list[str], code: int) -> None:
    done = on_windows(f"sys.argv[1:] = {arguments!r}; from esker.server.cli.entry import run; run()")
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("esker: Esker does not run on Windows itself, but in WSL.\n")
    assert "wsl --install" in done.stderr
