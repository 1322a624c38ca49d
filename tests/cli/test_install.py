"""`esker install` and `esker uninstall`: they show the diff, ask, write, and list next steps."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from esker.server.agents.install.clients import CLIENTS
from tests.support.forks import run_forked
from tests.support.made import made_at
from tests.support.processes import ROOT, environment
from tests.support.waiting import PATIENCE

PROGRAM = Path(sys.executable).with_name("esker")


def run(home: Path, *arguments: str, code: int = 0, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a home, without a terminal."""
    done = run_forked(arguments, home, _environment(home, **environ), timeout=PATIENCE)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def _environment(home: Path, **environ: str) -> dict[str, str]:
    elsewhere = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "ESKER_STATE_DIR")
    inherited = {name: value for name, value in environment().items() if name not in elsewhere}
    return inherited | {"HOME": str(home), "PYTHONPATH": str(ROOT)} | environ


def as_json(home: Path, *arguments: str, code: int = 0, **environ: str) -> Any:
    """Run a command and return what it printed as JSON."""
    return json.loads(run(home, *arguments, "--json", code=code, **environ).stdout)


def files(home: Path) -> dict[str, bytes]:
    """Return the files of a home, without Esker's own state."""
    found = {path.relative_to(home).as_posix(): path for path in home.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith(".local/")}


def test_without_a_terminal_and_without_yes_nothing_is_written(tmp_path: Path) -> None:
    done = run(tmp_path, "install", "claude-code", code=1)
    assert f"+++ {tmp_path}/.claude/settings.json" in done.stdout
    assert f"{PROGRAM} hook --url http://127.0.0.1:8377 --state-dir " in done.stdout
    assert " claude-code SessionStart" in done.stdout
    assert "Nothing was written" in done.stdout
    assert "--yes" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_shows_and_writes_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, "install", "codex", "--dry-run", "--yes")
    assert '+url = "http://127.0.0.1:8377/mcp?hooks=yes"' in done.stdout
    assert "Nothing was written because of --dry-run." in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("more", [["--dry-run"], []])
def test_next_steps_are_shown_only_after_an_installation(tmp_path: Path, more: list[str]) -> None:
    code = 0 if more else 1  # without a terminal it is not confirmed
    shown = run(tmp_path, "install", "codex", *more, code=code)
    assert "Clients send no key." in shown.stderr
    assert "/hooks" not in shown.stderr
    assert "restart them" not in shown.stderr
    said = as_json(tmp_path, "install", "codex", *more, code=code)["notes"]
    done = as_json(tmp_path, "install", "codex", "--yes")["notes"]
    assert done[: len(said)] == said
    assert [text.split()[0] for text in done[len(said) :]] == ["Codex", "Sessions"]
    assert "run this command again" not in run(tmp_path, "uninstall", "codex", "--dry-run").stderr


def test_an_address_with_a_password_is_refused_before_anything_is_shown(tmp_path: Path) -> None:
    done = run(tmp_path, "install", "pi", "--yes", code=1, ESKER_URL="http://me:secret@memory.lan")
    assert "which would be written into files" in done.stderr
    assert "secret" not in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_one_line_file_is_shown_spread_and_stays_one_line(tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    before = {"mcpServers": {f"s{n}": {"url": f"http://s{n}", "args": ["é", 1.50, None]} for n in range(50)}}
    text = json.dumps(before, separators=(",", ":"), ensure_ascii=False)
    (tmp_path / ".cursor/mcp.json").write_text(text)
    shown = run(tmp_path, "install", "cursor", "--yes").stdout
    first, *lines = shown[: shown.index("--- /dev/null")].splitlines()
    assert first.startswith(f"{tmp_path}/.cursor/mcp.json has long lines")
    assert max(map(len, [first, *lines])) <= 160 + len(str(tmp_path))
    changed = [line for line in lines if line[0] in "+-" and line[:3] not in ("+++", "---")]
    assert changed == ["+    },", '+    "esker": {', '+      "url": "http://127.0.0.1:8377/mcp?hooks=yes"']
    written = (tmp_path / ".cursor/mcp.json").read_text()
    assert written == text[:-2] + ',"esker":{"url":"http://127.0.0.1:8377/mcp?hooks=yes"}}}'
    # --json has the unchanged diff.
    run(tmp_path, "uninstall", "cursor", "--yes")
    [file, _] = as_json(tmp_path, "install", "cursor", "--dry-run")["clients"][0]["files"]
    assert f"-{text}\n" in file["diff"]


def test_an_edited_plugin_is_copied_and_that_is_reported(tmp_path: Path) -> None:
    run(tmp_path, "install", "pi", "--yes")
    plugin = tmp_path / ".pi/agent/extensions/esker.ts"
    plugin.write_text(edited := plugin.read_text() + "// mine\n")
    aside = tmp_path / ".pi/agent/extensions/esker.ts.edited"
    shown = run(tmp_path, "uninstall", "pi", "--dry-run")
    assert f"{plugin} was edited: its present text is kept as {aside}" in shown.stderr
    assert not aside.exists()
    run(tmp_path, "uninstall", "pi", "--yes")
    assert set(files(tmp_path)) == {".pi/agent/extensions/esker.ts.edited"}
    assert aside.read_text() == edited
    run(tmp_path, "install", "pi", "--yes")
    plugin.write_text("export default () => {}\n")
    done = run(tmp_path, "uninstall", "pi", "--yes")
    assert f"{plugin} no longer belongs to Esker, so it stays." in done.stderr
    assert plugin.read_text() == "export default () => {}\n"


def test_an_installation_can_be_undone(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_text('{"model": "opus"}')
    before = files(tmp_path)
    installed = run(tmp_path, "install", "claude-code", "codex", "--yes")
    assert f"claude-code: changed {tmp_path}/.claude/settings.json" in installed.stdout
    assert f"codex: created {tmp_path}/.codex/hooks.json" in installed.stdout
    assert "/hooks" in installed.stderr  # Codex requires them to be trusted
    again = run(tmp_path, "install", "claude-code", "codex")
    assert again.stdout == "claude-code: nothing to do.\ncodex: nothing to do.\n"
    assert again.stderr == ""
    assert " codex Stop" in (tmp_path / ".codex/hooks.json").read_text()
    run(tmp_path, "uninstall", "--all", "--yes")
    assert files(tmp_path) == before
    assert "nothing to do" in run(tmp_path, "uninstall", "--all").stdout


def test_all_sets_up_the_clients_found_and_lists_the_others(tmp_path: Path) -> None:
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".cursor").mkdir()
    done = as_json(tmp_path, "install", "--all", "--yes")
    assert done["written"] is True
    assert [each["client"] for each in done["clients"]] == ["gemini-cli", "cursor"]
    assert set(done["left_out"]) == {"claude-code", "codex", "opencode", "pi", "copilot"}
    assert done["left_out"]["codex"] == f"{tmp_path}/.codex does not exist"
    [file] = done["clients"][0]["files"]
    assert (file["path"], file["change"]) == (f"{tmp_path}/.gemini/settings.json", "create")
    assert file["diff"].startswith("--- /dev/null\n")


def test_all_without_any_client_is_an_error(tmp_path: Path) -> None:
    said = as_json(tmp_path, "install", "--all", "--yes", code=1)
    assert "No client was found on this machine" in said["error"]
    assert f"{tmp_path}/.pi/agent" in said["error"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["emacs"], "Unknown client 'emacs'."),
        ([], "Name either clients or --all."),
        (["codex", "--all"], "Name either clients or --all."),
        (["codex", "--scope", "project"], "codex can only be set up for a user, not for a project."),
        (["claude-code", "--scope", "world"], "The scope 'world' does not exist."),
    ],
)
def test_contradictory_arguments_are_refused(tmp_path: Path, arguments: list[str], complaint: str) -> None:
    for verb in ("install", "uninstall"):
        said = as_json(tmp_path, verb, *arguments, "--yes", code=2)
        assert said["error"] == complaint
        assert arguments != ["emacs"] or all(name in said["hint"] for name in CLIENTS)
        assert list(tmp_path.iterdir()) == []


def test_a_broken_file_stops_everything(tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor/mcp.json").write_text('{\n  "mcpServers": {,\n}')
    before = files(tmp_path)
    said = as_json(tmp_path, "install", "claude-code", "cursor", "--yes", code=1)
    assert said["error"].startswith(f"{tmp_path}/.cursor/mcp.json: line 2, column 18: ")
    assert said["hint"].startswith("Nothing was written.")
    assert files(tmp_path) == before


def test_the_key_is_used_from_the_environment_and_not_written(tmp_path: Path) -> None:
    key = "esker_0123456789abcdefghijklmnop"
    without = run(tmp_path, "install", "claude-code", "--yes")
    assert "Clients send no key." in without.stderr
    done = run(tmp_path, "install", "claude-code", "--yes", ESKER_KEY=key, ESKER_URL="http://memory.lan:1")
    assert "No file contains the key" in done.stderr
    assert "Hooks connect to http://memory.lan:1 and keep their state in " in done.stderr
    assert key not in done.stdout + done.stderr
    servers = json.loads((tmp_path / ".claude.json").read_text())["mcpServers"]
    assert servers["esker"]["url"] == "http://memory.lan:1/mcp?hooks=yes"
    assert servers["esker"]["headers"] == {"Authorization": "Bearer ${ESKER_KEY}"}
    assert all(key.encode() not in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    run(tmp_path, "install", "claude-code", "--yes", "--without-key")
    assert "ESKER_KEY" not in (tmp_path / ".claude.json").read_text()
    run(tmp_path, "install", "claude-code", "--yes", "--with-key")
    assert "Bearer ${ESKER_KEY}" in (tmp_path / ".claude.json").read_text()


def test_a_project_has_its_own_files(tmp_path: Path) -> None:
    run(tmp_path, "install", "claude-code", "--scope", "project", "--yes")
    assert set(files(tmp_path)) == {".mcp.json", ".claude/settings.json"}
    elsewhere = run(tmp_path, "uninstall", "claude-code", "--yes")
    assert f"Esker remains in {tmp_path}/.mcp.json" in elsewhere.stderr
    run(tmp_path, "uninstall", "--all", "--scope", "project", "--yes")
    assert files(tmp_path) == {}


def test_a_restored_file_with_older_entries_is_reported(tmp_path: Path) -> None:
    by_hand = '{"mcpServers": {"esker": {"type": "http", "url": "http://127.0.0.1:1/mcp"}}}'
    (tmp_path / ".claude.json").write_text(by_hand)
    run(tmp_path, "install", "claude-code", "--yes")
    done = run(tmp_path, "uninstall", "claude-code", "--yes")
    assert (tmp_path / ".claude.json").read_text() == by_hand
    assert ".claude.json had an Esker entry before the installation" in done.stderr
    run(tmp_path, "uninstall", "claude-code", "--yes")
    assert json.loads((tmp_path / ".claude.json").read_text()) == {}


@pytest.mark.parametrize(("answer", "code"), [(b"y\n", 0), (b"n\n", 1), (b"\n", 1)])
def test_at_a_terminal_it_asks(tmp_path: Path, answer: bytes, code: int) -> None:
    ours, theirs = pty.openpty()
    try:
        os.write(ours, answer)
        done = subprocess.run(
            [sys.executable, "-P", "-m", "esker", "install", "pi"],
            cwd=tmp_path,
            env=_environment(tmp_path),
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == code, done.stderr
    assert "Write this? [y/N]" in done.stdout
    assert bool(files(tmp_path)) == (code == 0)


def test_an_installation_keeps_the_exclusions_of_this_shell_for_every_environment(tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    listed = tmp_path / ".local/state/esker/exclude"
    shown = run(tmp_path, "install", "codex", "--dry-run", ESKER_EXCLUDE="acme/*")
    assert f"{listed}: add acme/*" in shown.stdout
    assert not listed.exists()
    as_json(tmp_path, "install", "codex", "--yes", ESKER_EXCLUDE="acme/*")
    assert listed.read_text().splitlines()[1:] == ["acme/*"]
    assert as_json(tmp_path, "install", "codex", "--yes", ESKER_EXCLUDE="acme/*")["state"] == []


def test_a_key_is_kept_on_request_and_goes_with_the_last_client(tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    kept = tmp_path / ".local/state/esker/keys.json"
    run(tmp_path, "install", "codex", "--keep-key", "--yes", code=1)
    run(tmp_path, "install", "codex", "--keep-key", "--yes", ESKER_KEY="esk_k")
    assert json.loads(kept.read_text()) == {"http://127.0.0.1:8377": "esk_k"}
    run(tmp_path, "uninstall", "--all", "--yes")
    assert not kept.exists()


def test_the_first_key_names_the_clients_that_send_none(tmp_path: Path) -> None:
    run(tmp_path, "install", "codex", "pi", "--yes")
    run(tmp_path, "install", "pi", "--with-key", "--yes")
    made = run(tmp_path, "key", "create", "laptop", ESKER_DATA_DIR=made_at(tmp_path / "data"))
    assert "codex: their hooks and MCP servers send no key yet" in made.stderr
    assert "`esker install codex --with-key`" in made.stderr
    assert "pi" not in made.stderr.partition("send no key")[2]


def test_an_installation_without_the_key_at_hand_lets_clients_send_it_further(tmp_path: Path) -> None:
    run(tmp_path, "install", "pi", "--with-key", "--yes")
    run(tmp_path, "install", "pi", "--yes")
    assert "ESKER_KEY" in (tmp_path / ".pi/agent/mcp.json").read_text()
    run(tmp_path, "install", "pi", "--without-key", "--yes")
    assert "ESKER_KEY" not in (tmp_path / ".pi/agent/mcp.json").read_text()


def test_doctor_and_the_json_of_a_key_name_the_clients_that_send_none(tmp_path: Path) -> None:
    data = made_at(tmp_path / "data")
    run(tmp_path, "install", "codex", "--yes")
    made = as_json(tmp_path, "key", "create", "laptop", ESKER_DATA_DIR=data)
    assert made["clients_without_key"] == ["codex"]
    done = run_forked(["doctor", "--quick"], tmp_path, _environment(tmp_path, ESKER_KEY=made["key"]), timeout=280)
    assert "codex: hooks and MCP servers send no key" in done.stdout
