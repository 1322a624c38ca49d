"""Installed hooks and plugins call the server they were installed for, whatever the environment names."""

import json
import shlex
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from esker.server.agents.json_text import parse, value_of
from tests.agents.test_plugins import OPENCODE, PI, SESSION_FILE, Plugin, system
from tests.support.homes import FILES, Home
from tests.support.made import made_at
from tests.support.processes import environment, esker, served

ESKER = str(Path(sys.executable).with_name("esker"))
NOWHERE = "http://127.0.0.1:1"
FACT = "Sessions are kept in Redis for a day."


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A server at another than the default address, with one memory."""
    with served("--data-dir", made_at(tmp_path_factory.mktemp("data") / "d")) as (_, said):
        assert esker("remember", FACT, "--everywhere", "--priority", "high", ESKER_URL=said["url"]).returncode == 0
        yield said["url"]


def run(command: str, **environ: str) -> str:
    """Run a hook as an agent does at the start of a session, and return what it prints."""
    event_input = json.dumps({"session_id": "s1", "cwd": "/", "source": "startup"})
    there = environment(ESKER_HOOK_SECONDS="60", **environ)
    done = subprocess.run(
        ["sh", "-c", command], input=event_input, env=there, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout


def first_command(value: Any) -> str:
    """Return the first command in a configuration."""
    if isinstance(value, dict) and isinstance(value.get("command"), str):
        return value["command"]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((found for item in inner if (found := first_command(item))), "")


@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini-cli", "cursor", "copilot"])
@pytest.mark.parametrize("elsewhere", ["", NOWHERE])
def test_a_hook_finds_the_server_it_was_installed_for(tmp_path: Path, url: str, client: str, elsewhere: str) -> None:
    home = Home(tmp_path, program=ESKER, url=url)
    home.install(client)
    start = first_command(value_of(parse(home.read(FILES[client][-1]))))
    # Gemini CLI gets the pack with its first prompt.
    commands = [start, start.replace("SessionStart", "BeforeAgent")] if client == "gemini-cli" else [start]
    assert FACT in "".join(run(command, ESKER_URL=elsewhere) for command in commands)


def test_plugins_find_the_server_they_were_installed_for(tmp_path: Path, url: str) -> None:
    home = Home(tmp_path / "home", program=ESKER, url=url)
    home.install("opencode", "pi")
    opencode = Plugin(home.root / FILES["opencode"][1], tmp_path, OPENCODE)
    pi = Plugin(home.root / FILES["pi"][1], tmp_path, PI)
    turn = [["session_start", {"reason": "new"}, [], SESSION_FILE], ["before_agent_start", {}, [], SESSION_FILE]]
    elsewhere = environment(ESKER_URL=NOWHERE, ESKER_HOOK_SECONDS="60")
    _, [output] = opencode.call(system(), **elsewhere)
    _, [_, answer] = pi.call(*turn, **elsewhere)
    assert FACT in output["system"][1]
    assert FACT in answer["message"]["content"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--url", "URL", "claude-code", "SessionStart"],
        ["--url=URL", "claude-code", "SessionStart"],
        ["claude-code", "SessionStart", "--url", "URL"],
        ["claude-code", "--url=URL", "SessionStart"],
    ],
)
def test_the_address_option_may_be_anywhere(url: str, arguments: list[str]) -> None:
    words = [ESKER, "hook", *(each.replace("URL", url) for each in arguments)]
    assert FACT in run(" ".join(words))


@pytest.mark.parametrize("arguments", [["--url"], ["--url", NOWHERE], ["--url=", "codex"], ["codex", "Stop", "--url"]])
def test_a_hook_with_missing_arguments_succeeds(arguments: list[str]) -> None:
    assert run(shlex.join([ESKER, "hook", *arguments])) == ""
