"""Esker runs its own code wherever it is called: nothing in the working directory is imported or read as settings."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.support.made import made_at
from tests.support.processes import environment, ready
from tests.support.waiting import PATIENCE

NAMES = ("esker", "server", "embedding_worker", "evals", "sitecustomize", "usercustomize", "json", "typing", "torch")
# The program that pip writes: it is not in the working directory, so neither is the head of its import path.
PROGRAM = "from esker.server.cli.entry import run\nrun()\n"
# Every module that the command line imports for a verb.
EVERY_VERB = """
import importlib
import esker.server.cli.main
from esker.server.cli.verbs import VERBS
for module, _ in VERBS.values():
    assert importlib.import_module(f"esker.server.cli.{module}").app
"""
# It cannot be reached, so the worker starts without loading a model, and says so.
UNREACHABLE = "openai:http://127.0.0.1:9#none"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder whose modules leave a file `ran-…` when they are imported, and whose `.env` has a wrong setting."""
    folder = tmp_path / "hostile"
    (folder / "migrations").mkdir(parents=True)
    for name in (*NAMES, "migrations/__init__"):
        marker = folder / f"ran-{Path(name).name}"
        (folder / f"{name}.py").write_text(f"open({str(marker)!r}, 'w').close()\n")
    (folder / "migrations/0001_spine.sql").write_text("SELECT broken;")
    (folder / ".env").write_text("ESKER_PORT=many\nESKER_HOST=0.0.0.0\nFASTMCP_LOG_LEVEL=WRONG\n")
    return folder


def ran(folder: Path) -> list[str]:
    """Return the markers of the modules that were run."""
    return sorted(path.name for path in folder.glob("**/ran-*"))


def test_the_folder_is_dangerous_to_a_process_in_unsafe_mode(hostile: Path) -> None:
    subprocess.run([sys.executable, "-m", "esker"], cwd=hostile, env=environment(), check=True)
    assert "ran-esker" in ran(hostile)


def test_no_verb_imports_from_the_working_directory(hostile: Path) -> None:
    done = subprocess.run([sys.executable, "-P", "-c", EVERY_VERB], cwd=hostile, env=environment(), check=False)
    assert (done.returncode, ran(hostile)) == (0, [])


def installed(hostile: Path, *command: str, message: str = "{}") -> subprocess.CompletedProcess[str]:
    """Run a command of the installed program in the hostile folder."""
    program, home = hostile.parent / "bin/esker", hostile.parent / "home"
    program.parent.mkdir()
    (home / ".claude").mkdir(parents=True)
    program.write_text(PROGRAM)
    given = environment(HOME=str(home), XDG_DATA_HOME="", ESKER_URL="http://127.0.0.1:9")
    arguments = [sys.executable, str(program), *command]
    return subprocess.run(arguments, cwd=hostile, env=given, input=message, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", ["status", "doctor --quick", "hook claude-code SessionStart"])
def test_the_installed_program_imports_nothing_from_the_working_directory(hostile: Path, command: str) -> None:
    done = installed(hostile, *command.split())
    assert ran(hostile) == []
    assert "unexpected" not in done.stderr
    assert "ESKER_PORT" not in done.stdout + done.stderr, "its .env is not read"


def test_clients_are_set_up_to_start_the_installed_program(hostile: Path) -> None:
    done = installed(hostile, "install", "--all", "--yes")
    assert (done.returncode, ran(hostile)) == (0, []), done.stderr
    settings = (hostile.parent / "home/.claude/settings.json").read_text()
    assert f"{hostile.parent / 'bin/esker'} hook --url" in settings


def test_a_program_beside_a_checkout_named_esker_finds_the_client(tmp_path: Path) -> None:
    (tmp_path / "esker").mkdir()
    program = tmp_path / "agent.py"
    program.write_text("from esker import Esker")
    subprocess.run([sys.executable, program], env=environment(), check=True)


def test_no_other_folder_of_the_checkout_can_be_imported(tmp_path: Path) -> None:
    names = ("server", "embedding_worker", "migrations", "evals", "tests")
    program = f"from importlib.util import find_spec; print([name for name in {names} if find_spec(name)])"
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, cwd=tmp_path, env=environment(), check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[]"


def test_the_mcp_server_imports_nothing_from_the_working_directory(hostile: Path) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n"
    done = installed(hostile, "mcp", message=message)
    assert "serverInfo" in json.loads(done.stdout.splitlines()[0])["result"]
    assert ran(hostile) == []


def test_a_server_and_its_worker_import_nothing_from_the_working_directory(hostile: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-P",
        "-m",
        "esker",
        "serve",
        "--port",
        "0",
        "--json",
        "--data-dir",
        made_at(tmp_path / "d"),
    ]
    given = environment(ESKER_EMBEDDER=UNREACHABLE)
    with subprocess.Popen(
        command,
        cwd=hostile,
        env=given,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            url = ready(process)["url"]
            assert url.startswith("http://127.0.0.1:"), "its .env is not read"
            assert process.stderr is not None
            assert any("Trying again" in line for line in process.stderr), "the worker has started"
            with urlopen(f"{url}/readyz") as answer:
                assert json.load(answer)["worker"].startswith(("waiting: ", "loading "))
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE)
    assert ran(hostile) == []
