"""`esker install` and `esker uninstall`: setting agent CLIs up, and taking that back."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from esker.server.agents.install.applying import apply
from esker.server.agents.install.client import KEY_VARIABLE, PROJECT, USER, Client, InstallTarget, check_address
from esker.server.agents.install.clients import CLIENTS, client_of
from esker.server.agents.install.edits import Edit, installing, returning, uninstalling
from esker.server.agents.install.originals import Originals
from esker.server.cli.connection import connect
from esker.server.cli.output import AsJson, note, print_json, say
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.errors import InvalidInput, Misconfigured, NotFound

app = typer.Typer(add_completion=False)

_PROGRAM = "esker"
_ORIGINALS = "installed"
_WIDEST = 400
# What people read at a glance; in a file of longer lines a change is hard to see.
_READABLE = 160
_ANEW = "Sessions that are open now go on without; start them anew."

Names = Annotated[list[str] | None, typer.Argument(metavar="CLIENT…", help=f"Clients: {', '.join(CLIENTS)}.")]
All = Annotated[bool, typer.Option("--all", help="All clients that are on this machine.")]
ScopeOption = Annotated[str, typer.Option(help="`user`, or `project`: the working directory alone (Claude Code only).")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]


@dataclass(frozen=True, slots=True)
class _InstallPlan:
    """What would happen: to which clients, which edits; which are left out, and why.

    `notes` are true before and after, `next_steps` only once it is written.
    """

    clients: list[Client]
    edits: list[Edit]
    notes: list[str]
    next_steps: list[str]
    left_out: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def changed(self) -> list[Edit]:
        """The edits that change a file; others only tidy up what is kept of originals."""
        return [edit for edit in self.edits if edit.changes]


@dataclass(frozen=True, slots=True)
class _Consent:
    """How to go on once it is known what would happen."""

    yes: bool
    dry_run: bool
    as_json: bool


@app.command()
def install(
    clients: Names = None,
    everything: All = False,
    scope: ScopeOption = USER,
    with_key: Annotated[
        bool,
        typer.Option("--with-key", help=f"Have clients send the key in {KEY_VARIABLE}, though it is not set here."),
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Set agent CLIs up for Esker: its MCP server and its hooks. What would change is shown first, and asked about."""
    settings = _settings()
    place = _place(settings, scope, with_key=with_key or settings.key is not None)
    check_address(settings.url)
    left_out = _left_out(place) if everything and not clients else {}
    chosen = _chosen(clients, everything, place, left_out)
    originals = Originals(settings.state_dir / _ORIGINALS)
    edits = installing(chosen, place, originals)
    changes = any(edit.changes for edit in edits)
    notes = [*_aside(edits), *_install_notes(place)] if changes else []
    next_steps = [text for client in chosen for text in client.notes] + [_ANEW] if changes else []
    _go_on(_Consent(yes, dry_run, as_json), _InstallPlan(chosen, edits, notes, next_steps, left_out), originals, place)


@app.command()
def uninstall(
    clients: Names = None,
    everything: All = False,
    scope: ScopeOption = USER,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Take Esker out of agent CLIs again. Files that are as it left them become what they were, to the byte."""
    settings = _settings()
    place = _place(settings, scope, with_key=False)
    chosen = _chosen(clients, everything, place, {})
    originals = Originals(settings.state_dir / _ORIGINALS)
    edits = uninstalling(chosen, place, originals)
    notes = [*_aside(edits), *_foreign(edits, chosen, place), *_elsewhere(chosen, place, originals)]
    _go_on(
        _Consent(yes, dry_run, as_json),
        _InstallPlan(chosen, edits, notes, _again(edits, chosen, place)),
        originals,
        place,
    )


# What it is about --------------------------------------------------------------------------------------------------


def _settings() -> ClientSettings:
    connect()  # says what is wrong with the settings, and asks nobody
    return ClientSettings.from_environment(os.environ)


def _place(settings: ClientSettings, scope: str, *, with_key: bool) -> InstallTarget:
    if scope not in (USER, PROJECT):
        raise InvalidInput(f"There is no scope {scope!r}.", hint=f"It is {USER} or {PROJECT}.")
    return InstallTarget(Path.home(), Path.cwd(), os.environ, _program(), settings.url, with_key, scope)


def _program() -> str:
    """Return the absolute path of the program that hooks run: this one, as it was called or as it is installed."""
    beside = Path(sys.executable).with_name(_PROGRAM)
    called = Path(sys.argv[0])
    found = next((path for path in (called, beside) if path.name == _PROGRAM and path.is_file()), None)
    program = found or shutil.which(_PROGRAM)
    if program is None:
        raise Misconfigured("There is no `esker` program that hooks could run.", hint="Install the package with pip.")
    return os.path.abspath(program)


def _chosen(
    names: Sequence[str] | None, everything: bool, place: InstallTarget, left_out: Mapping[str, str]
) -> list[Client]:
    """Return the clients that are meant."""
    if bool(names) == everything:
        raise InvalidInput("Say which clients, or --all.", hint=f"There are {', '.join(CLIENTS)}.")
    if everything:
        return [each for name, each in CLIENTS.items() if name not in left_out and place.scope in each.scopes]
    clients = [client_of(name) for name in dict.fromkeys(names or ())]
    for client in clients:
        if place.scope not in client.scopes:
            raise InvalidInput(f"{client.name} is set up for a user, not for a {place.scope}.")
    return clients


def _left_out(place: InstallTarget) -> dict[str, str]:
    """Return the clients that are not on this machine, and why that seems so. Raises NotFound when all are."""
    left_out = {name: why for name, client in CLIENTS.items() if (why := _why_not(client, place))}
    if len(left_out) == len(CLIENTS):
        looked = ", ".join(str(client.folder(place)) for client in CLIENTS.values())
        raise NotFound(f"None of the clients is on this machine: there is no {looked}.", hint="Name one to set it up.")
    return left_out


def _why_not(client: Client, place: InstallTarget) -> str | None:
    if place.scope not in client.scopes:
        return f"it is not set up for a {place.scope}"
    if place.scope == USER and not client.folder(place).is_dir():
        return f"there is no {client.folder(place)}"
    return None


def _install_notes(place: InstallTarget) -> list[str]:
    notes: list[str] = []
    if place.with_key:
        notes.append(f"The key is in no file: clients take it from {KEY_VARIABLE}, so set that where they start.")
    else:
        notes.append(f"Clients send no key. Where the server has keys: set {KEY_VARIABLE}, or say --with-key.")
    if place.options:
        notes.append(f"Hooks speak to {place.url}, unless ESKER_URL is set where a client starts: then to that.")
    if place.scope == PROJECT:
        notes.append("The hooks name a program of this machine: that is nothing to share with others.")
    return notes


def _aside(edits: Sequence[Edit]) -> list[str]:
    return [
        f"{edit.aside_of} was edited: as it is it goes to {edit.path}, where no client loads it."
        for edit in edits
        if edit.aside_of
    ]


def _foreign(edits: Sequence[Edit], clients: Sequence[Client], place: InstallTarget) -> list[str]:
    whole = {part.path for client in clients for part in client.parts(place) if part.whole}
    return [
        f"{edit.path} is not Esker's any more, and stays."
        for edit in edits
        if edit.path in whole and edit.after is not None and not edit.changes
    ]


def _elsewhere(clients: Sequence[Client], place: InstallTarget, originals: Originals) -> list[str]:
    names = {client.name for client in clients}
    here = {part.path for client in clients for part in client.parts(place)}
    found = [kept.path for kept in originals.all() if kept.client in names and kept.path not in here]
    return [f"Esker stays in {path}, which belongs to another folder or scope." for path in found]


def _again(edits: Sequence[Edit], clients: Sequence[Client], place: InstallTarget) -> list[str]:
    found = returning(edits, clients, place)
    return [f"{path} had an entry of Esker before; run this once more to have that gone, too." for path in found]


# Showing and writing -----------------------------------------------------------------------------------------------


def _go_on(asked: _Consent, plan: _InstallPlan, originals: Originals, place: InstallTarget) -> None:
    """Show what would change, ask, and write it; exit with 1 where that was wanted and did not come to pass."""
    if not asked.as_json:
        _show(plan)
    wanted = bool(plan.edits) and not asked.dry_run
    written = wanted and _allowed(asked, plan)
    if written:
        apply(plan.edits, originals, shared=place.scope == PROJECT)
    if asked.as_json:
        print_json(_as_json(plan, written and bool(plan.changed)))
    else:
        _show_end(asked, plan, written)
    if wanted and not written:
        raise typer.Exit(1)


def _allowed(asked: _Consent, plan: _InstallPlan) -> bool:
    if asked.yes or not plan.changed:
        return True
    return not asked.as_json and sys.stdin.isatty() and typer.confirm("Write this?", default=False)


def _show(plan: _InstallPlan) -> None:
    for edit in plan.changed:
        _show_edit(edit)
    for client in plan.clients:
        if all(edit.client != client.name for edit in plan.changed):
            say(f"{client.name}: nothing to do.")
    for name, why in plan.left_out.items():
        say(f"{name}: left out, {why}.")


def _show_edit(edit: Edit) -> None:
    if edit.aside_of:
        say(f"{edit.path}: {edit.aside_of} as it is now")
        return
    diff = edit.diff()
    if any(len(line) > _READABLE for line in diff.split("\n")) and (spread := edit.spread()):
        say(f"{edit.path} has long lines and keeps them; each value is on a line of its own only here:")
        diff = spread
    for line in diff.removesuffix("\n").split("\n"):
        say(line if len(line) <= _WIDEST else f"{line[:_WIDEST]}…")


def _show_end(asked: _Consent, plan: _InstallPlan, written: bool) -> None:
    if written:
        verbs = {"create": "made", "edit": "changed", "delete": "deleted"}
        for edit in plan.changed:
            say(f"{edit.client}: {verbs[edit.kind]} {edit.path}")
    elif plan.changed and asked.dry_run:
        say("Nothing was written, as --dry-run asks.")
    elif plan.changed:
        say("Nothing was written: it was not confirmed. Without a terminal to ask at, say --yes.")
    for text in [*plan.notes, *(plan.next_steps if written else ())]:
        note(text)


def _as_json(plan: _InstallPlan, written: bool) -> dict[str, object]:
    def files(client: Client) -> list[dict[str, str]]:
        mine = [edit for edit in plan.changed if edit.client == client.name]
        return [{"path": str(edit.path), "change": edit.kind, "diff": edit.diff()} for edit in mine]

    notes = [*plan.notes, *(plan.next_steps if written else ())]
    listed = [{"client": client.name, "files": files(client)} for client in plan.clients]
    return {"written": written, "clients": listed, "left_out": plan.left_out, "notes": notes}
