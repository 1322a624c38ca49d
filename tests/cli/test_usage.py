"""Wrong usage of every verb, the help page, completion, and output that is no terminal's."""

import json
import signal
import sys
from collections.abc import Generator, Iterator

import pytest
import typer
from typer.core import TyperGroup

from esker.server.cli.main import Verbs, app, run
from esker.server.cli.output import progress
from esker.server.cli.verbs import VERBS
from tests.support.processes import esker

CLIENT_PROGRAMS = {"mcp", "hook"}
"""Verbs that agent CLIs start; an error as JSON would not fit their protocol."""


def commands_of(verb: str) -> Iterator[tuple[str, ...]]:
    """Yield a verb, or the names of all commands of a verb with several."""
    root = typer.main.get_command(app)
    assert isinstance(root, Verbs)
    context = typer.Context(root)  # pyright: ignore[reportArgumentType]
    _, found, _ = root.resolve_command(context, [verb])
    if found.context_settings.get("ignore_unknown_options"):  # options belong to the program that the verb starts
        return
    yield from ((verb, name) for name in found.commands) if isinstance(found, TyperGroup) else [(verb,)]


EVERY = [path for verb in VERBS if verb not in CLIENT_PROGRAMS for path in commands_of(verb)]
# Verbs that start a program: everything after the program's name belongs to it.
STARTING = ("gateway",)


@pytest.fixture
def interruptible() -> Generator[None]:
    """Restore the handler of Ctrl-C, which a failing command ignores."""
    handler = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, handler)


def called(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> object:
    """Call the command line in this process; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["esker", *arguments])
    with pytest.raises(SystemExit) as stopped:
        run()
    return stopped.value.code


@pytest.mark.usefixtures("interruptible")
def test_an_edit_that_changes_nothing_is_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called("edit", "mem_1", monkeypatch=monkeypatch) == 2
    assert "the right words behind the id" in " ".join(capsys.readouterr().err.split())


@pytest.mark.usefixtures("interruptible")
def test_a_kind_that_no_memory_has_is_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called("recall", "boats", "--kind", "note", "--kind", "notes", monkeypatch=monkeypatch) == 2
    assert "--kind must be observation, reflection, note or manual, not 'notes'." in capsys.readouterr().err


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("path", [path for path in EVERY if path != STARTING], ids=" ".join)
def test_an_unknown_option_is_wrong_usage_for_every_verb(
    path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(*path, "--no-such-option", monkeypatch=monkeypatch) == 2
    assert "--no-such-option" in capsys.readouterr().err
    assert called(*path, "--no-such-option", "--json", monkeypatch=monkeypatch) == 2
    printed = capsys.readouterr()
    problem = json.loads(printed.out)
    assert ("--no-such-option" in problem["error"], printed.err) == (True, "")
    assert f"esker {' '.join(path)} --help" in problem["hint"]


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    "arguments",
    [
        ["recall"],
        ["remember", "x", "--project", "p", "--everywhere"],
        ["exclude", "--remove"],
        ["ingest"],
        ["ingest", "x", "--client", "emacs"],
        ["install"],
        ["install", "codex", "--scope", "planet"],
        ["spool", "--send", "--drop"],
        ["spool", "--drop"],
        ["jobs", "list", "--state", "asleep"],
        ["pool", "set", "--daily-cap", "1", "--no-cap"],
        ["pool", "keep", "--memories", "x"],
        ["reembed", "--status", "--rollback"],
        ["reflect", "ses_1", "--sessions"],
        ["setup", "--model", "x"],
        ["config", "obsever"],
        ["forget", "--words", "x", "--json"],
        ["memories", "--limit", "0"],
        ["recall", "x", "--since", "soon"],
    ],
    ids=" ".join,
)
def test_options_that_cannot_be_combined_or_read_are_wrong_usage(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert called(*arguments, monkeypatch=monkeypatch) == 2


def test_every_command_but_those_for_programs_takes_json() -> None:
    root = typer.main.get_command(app)
    assert isinstance(root, Verbs)
    without: set[str] = set()
    for path in EVERY:
        context = typer.Context(root)  # pyright: ignore[reportArgumentType]
        _, found, rest = root.resolve_command(context, [*path])
        command = found.commands[rest[0]] if isinstance(found, TyperGroup) else found
        if not any("--json" in parameter.opts for parameter in command.params):
            without.add(" ".join(path))
    assert without == {"worker"}


def test_verbs_are_completed_and_the_help_page_has_them_in_groups() -> None:
    asked = {"_ESKER_COMPLETE": "complete_bash", "COMP_WORDS": "esker reca", "COMP_CWORD": "1"}
    assert esker(**asked).stdout.split() == ["recall"]
    page = esker("--help").stdout
    assert "Ask and write" in page
    assert "Commands" not in page
    assert "--install-completion" in page


def test_no_bar_is_drawn_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as shown:
        assert list(shown.track([1, 2], description="Reading")) == [1, 2]
    said = capsys.readouterr().err
    assert ("Reading …\n" in said, "━" in said, "\x1b" in said) == (True, False, False)
