"""The snippets of the pages work: commands exist, programs compile, and tutorials do what they say."""

import ast
import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer

from esker.server.agents.install.clients import CLIENTS
from evals.__main__ import app as evals
from tests.support.forks import forked_command
from tests.support.made import made_at
from tests.support.processes import ROOT, environment, served
from tests.support.snippets import Snippet, commands_in, inline_commands, pages, snippets, unknown_words
from tests.support.waiting import PATIENCE

SHOWN = snippets()
RUN = (
    "docs/start/first-steps.md",
    *(f"docs/start/{client}.md" for client in CLIENTS),
    "docs/start/own-agent.md",
    "docs/ranking.md",
    "docs/sync.md",
    "docs/everyday.md",
)
"""Pages whose shell and Python are run here, in this order, on one server."""
OTHERS = {
    "README.md": "repeats the tutorials",
    "docs/agents.md": "installing is run by the tutorials; plugins of Claude Code need its program",
    "docs/api.md": "generators are programs of others; tests/unit/test_api_document.py checks what they get",
    "docs/benchmarks.md": "measures for minutes; tests/bench runs a short form",
    "docs/client.md": "run by tests/client; the one of the memory tool calls a model",
    "docs/configuration.md": "needs a language model's server; tests/cli/test_setup.py has a scripted one",
    "docs/deployment.md": "needs Docker, Helm, systemd or root; tests/deploy and tests/cli run what does not",
    "docs/evals.md": "needs data sets or minutes; tests/evals runs each command on a small one",
    "docs/forgetting.md": "tests/cli/test_forget.py runs each of these commands",
    "docs/gateway.md": "leads agent CLIs to their models; tests/gateway has scripted ones",
    "docs/keys.md": "a key closes the server to all without one; tests/cli and tests/security make keys",
    "docs/integrations.md": "tests/integrations/test_page.py runs them where the frameworks are installed",
    "docs/scaling.md": "writes for ten minutes; tests/bench runs a short form",
    "docs/team.md": "needs Docker, systemd or root",
}
"""Pages whose snippets are not run here, and why."""
ANSWERS = {
    # A person answers the question of the installer, and a browser opens the page.
    r"^(esker install [a-z-]+)$": r"\1 --yes",
    r"^make (demo|serve)$": "true  # run by tests/cli/test_demo.py, and by the server of this test",
    r"\bSESSION\b(?!=)(?<!\$SESSION)": "first",
}


def test_every_snippet_is_run_or_there_is_a_reason_not_to() -> None:
    runnable = {each.page for each in SHOWN if each.language in ("sh", "python")}
    assert runnable == {*RUN, *OTHERS}, "a page whose snippets are not run here is in OTHERS, with the reason"


@pytest.mark.parametrize("page", [*pages()])
def test_commands_on_the_pages_and_their_options_exist(page: str) -> None:
    text = pages()[page]
    blocks = [
        command for each in SHOWN if (each.page, each.language) == (page, "sh") for command in commands_in(each.text)
    ]
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    measures = vars(typer.main.get_command(evals))["commands"]
    for command in [*blocks, *inline_commands(text)]:
        program, name, *_ = command
        match program:
            case "esker":
                assert unknown_words(command) == [], command
            case "make":
                assert "=" in name or name in targets, command
            case _:
                assert name in measures, command


@pytest.mark.parametrize("snippet", [each for each in SHOWN if each.language == "python"], ids=lambda each: each.page)
def test_programs_compile_and_import_what_exists(snippet: Snippet) -> None:
    for node in ast.walk(ast.parse(snippet.text)):
        if isinstance(node, ast.ImportFrom) and node.module in ("esker", "mcp"):
            module = importlib.import_module(node.module)
            assert [each.name for each in node.names if not hasattr(module, each.name)] == []


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody who follows a page on a machine with a server; `home` has transcripts of Claude Code."""

    home: Path
    url: str
    variables: dict[str, str]

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a script of shell, as its reader would."""
        for shown, done in ANSWERS.items():
            script = re.sub(shown, done, script, flags=re.MULTILINE)
        script = script.replace("http://127.0.0.1:8377", self.url)
        command = ["bash", "-euo", "pipefail", "-c", script]
        there = environment(**self.variables)
        return subprocess.run(
            command, cwd=self.home, env=there, capture_output=True, text=True, timeout=PATIENCE, check=False
        )


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Generator[Reader]:
    """A reader with an empty home but for two transcripts, and `esker` on the PATH."""
    folder = tmp_path_factory.mktemp("reader")
    home, programs = folder / "home", folder / "bin"
    (home / ".claude/projects").mkdir(parents=True)
    shutil.copytree(ROOT / "server/agents/samples", home / ".claude/projects/shop")
    programs.mkdir()
    *start, _ = forked_command()
    esker = programs / "esker"
    esker.write_text(f'#!/bin/sh\nexec {shlex.join(start)} "$PWD" "$@"\n')
    esker.chmod(0o755)
    data_dir = made_at(folder / "d")
    with served("--data-dir", data_dir) as (_, said):
        paths = f"{programs}{os.pathsep}{os.environ['PATH']}"
        own = {"HOME": str(home), "PATH": paths, "BROWSER": "true", "ESKER_STATE_DIR": str(home / "state")}
        yield Reader(home, said["url"], own | {"ESKER_URL": said["url"], "ESKER_DATA_DIR": data_dir})


@pytest.mark.skipif(not shutil.which("curl") or not shutil.which("bash"), reason="the snippets are for curl and bash")
def test_the_tutorials_do_what_they_say(reader: Reader) -> None:
    printed = dict.fromkeys(RUN, "")
    done_before: set[str] = set()
    for page in RUN:
        for snippet in (each for each in SHOWN if each.page == page):
            # A step that only names another client is run with the first one: tests/agents has each of them.
            step = re.sub("|".join(CLIENTS), "CLIENT", snippet.text)
            if step in done_before:
                continue
            done_before.add(step)
            script = snippet.text
            if snippet.language == "python":
                program = reader.home / "program.py"
                program.write_text(script.replace("http://127.0.0.1:8377", reader.url), encoding="utf-8")
                script = f"PYTHONPATH={ROOT} {sys.executable} {program}"
            elif snippet.language != "sh":
                continue
            done = reader.run(script)
            assert done.returncode == 0, (page, snippet.text, done.stdout, done.stderr)
            printed[page] += done.stdout
    assert "rotates every 30 days" in printed["docs/start/first-steps.md"]
    assert "Nothing in memory is about this." in printed["docs/start/first-steps.md"]
    assert "60 messages stored" in printed["docs/start/claude-code.md"]
    assert (
        printed["docs/start/own-agent.md"].count("User decision: We decided to keep sessions in Redis for 24 hours.")
        >= 3
    )
    assert {"section", "relevance"} <= set(printed["docs/ranking.md"].replace("(", " ").split())
