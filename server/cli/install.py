"""`esker install` and `esker uninstall`: set agent CLIs up for Esker, and undo that."""

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
from esker.server.agents.install.edits import Edit, edits_to_install, edits_to_uninstall, restored_with_entries
from esker.server.agents.install.originals import Originals
from esker.server.cli.connection import connect
from esker.server.cli.output import AsJson, note, print_json, say
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.config.home import home
from esker.server.core.errors import InvalidInput, Misconfigured, NotFound

app = typer.Typer(add_completion=False)

_PROGRAM = "esker"
_ORIGINALS = "installed"
# Longest line of a diff that is shown, in characters; the rest is cut.
_LONGEST_SHOWN = 400
# Longest line, in characters, in which a change is easy to see; in longer ones each value is shown on its own line.
_LONGEST_READABLE = 160
_RESTART = "Sessions that are already open do not use Esker; restart them."

Names = Annotated[list[str] | None, typer.Argument(metavar="CLIENT…", help=f"Clients: {', '.join(CLIENTS)}.")]
All = Annotated[bool, typer.Option("--all", help="All clients found on this machine.")]
ScopeOption = Annotated[str, typer.Option(help="`user`, or `project`: only the working directory (Claude Code only).")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]


@dataclass(frozen=True, slots=True)
class _InstallPlan:
    """The clients and their edits, and the clients that are left out, with the reason.

    `notes` apply in any case, `next_steps` only after the edits are written.
    """

    clients: list[Client]
    edits: list[Edit]
    notes: list[str]
    next_steps: list[str]
    left_out: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def changed(self) -> list[Edit]:
        """The edits that change a file; the others only remove stored originals."""
        return [edit for edit in self.edits if edit.changes]


@dataclass(frozen=True, slots=True)
class _Consent:
    """Whether to write the plan, and how to show it."""

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
        typer.Option("--with-key", help=f"Have clients send the key in {KEY_VARIABLE}, even if it is not set here."),
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Set agent CLIs up for Esker: its MCP server and its hooks. Shows the changes and asks before it writes them."""
    settings = _settings()
    target = _target(settings, scope, with_key=with_key or settings.key is not None)
    check_address(settings.url)
    left_out = _absent_clients(target) if everything and not clients else {}
    chosen = _chosen_clients(clients, everything, target, left_out)
    originals = Originals(settings.state_dir / _ORIGINALS)
    edits = edits_to_install(chosen, target, originals)
    changes = any(edit.changes for edit in edits)
    notes = [*_notes_on_copies(edits), *_install_notes(target)] if changes else []
    next_steps = [text for client in chosen for text in client.notes] + [_RESTART] if changes else []
    _carry_out(
        _Consent(yes, dry_run, as_json), _InstallPlan(chosen, edits, notes, next_steps, left_out), originals, target
    )


@app.command()
def uninstall(
    clients: Names = None,
    everything: All = False,
    scope: ScopeOption = USER,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Remove Esker from agent CLIs. Files not edited since the installation are restored byte for byte."""
    settings = _settings()
    target = _target(settings, scope, with_key=False)
    chosen = _chosen_clients(clients, everything, target, {})
    originals = Originals(settings.state_dir / _ORIGINALS)
    edits = edits_to_uninstall(chosen, target, originals)
    notes = [
        *_notes_on_copies(edits),
        *_notes_on_foreign_files(edits, chosen, target),
        *_notes_on_other_places(chosen, target, originals),
    ]
    _carry_out(
        _Consent(yes, dry_run, as_json),
        _InstallPlan(chosen, edits, notes, _notes_on_earlier_entries(edits, chosen, target)),
        originals,
        target,
    )


# Changes --------------------------------------------------------------------------------------------------------------


def _settings() -> ClientSettings:
    connect()  # validates the settings; sends nothing
    return ClientSettings.from_environment(os.environ)


def _target(settings: ClientSettings, scope: str, *, with_key: bool) -> InstallTarget:
    if scope not in (USER, PROJECT):
        raise InvalidInput(f"The scope {scope!r} does not exist.", hint=f"Use {USER} or {PROJECT}.")
    return InstallTarget(home(), Path.cwd(), os.environ, _program(), settings.url, with_key, scope)


def _program() -> str:
    """Return the absolute path of the `esker` program that hooks run: the running one, else one on the PATH."""
    installed = Path(sys.executable).with_name(_PROGRAM)
    called = Path(sys.argv[0])
    found = next((path for path in (called, installed) if path.name == _PROGRAM and path.is_file()), None)
    program = found or shutil.which(_PROGRAM)
    if program is None:
        raise Misconfigured("No `esker` program was found for hooks to run.", hint="Install the package with pip.")
    return os.path.abspath(program)


def _chosen_clients(
    names: Sequence[str] | None, everything: bool, target: InstallTarget, left_out: Mapping[str, str]
) -> list[Client]:
    """Return the named clients, or those found on this machine. Raises InvalidInput."""
    if bool(names) == everything:
        raise InvalidInput("Name either clients or --all.", hint=f"The clients are {', '.join(CLIENTS)}.")
    if everything:
        return [each for name, each in CLIENTS.items() if name not in left_out and target.scope in each.scopes]
    clients = [client_of(name) for name in dict.fromkeys(names or ())]
    for client in clients:
        if target.scope not in client.scopes:
            raise InvalidInput(f"{client.name} can only be set up for a user, not for a {target.scope}.")
    return clients


def _absent_clients(target: InstallTarget) -> dict[str, str]:
    """Return the clients that are not on this machine, with the reason. Raises NotFound if none is."""
    left_out = {name: reason for name, client in CLIENTS.items() if (reason := _absence(client, target))}
    if len(left_out) == len(CLIENTS):
        folders = ", ".join(str(client.folder(target)) for client in CLIENTS.values())
        raise NotFound(f"No client was found on this machine: none of {folders} exists.", hint="Name one to set it up.")
    return left_out


def _absence(client: Client, target: InstallTarget) -> str | None:
    if target.scope not in client.scopes:
        return f"it cannot be set up for a {target.scope}"
    if target.scope == USER and not client.folder(target).is_dir():
        return f"{client.folder(target)} does not exist"
    return None


def _install_notes(target: InstallTarget) -> list[str]:
    notes: list[str] = []
    if target.with_key:
        notes.append(f"No file contains the key: set {KEY_VARIABLE} in the environment in which the clients start.")
    else:
        notes.append(f"Clients send no key. If the server requires one, set {KEY_VARIABLE} or use --with-key.")
    if target.options:
        notes.append(f"Hooks connect to {target.url}; ESKER_URL overrides it where a client starts.")
    if target.scope == PROJECT:
        notes.append("The hooks contain the path of a program on this machine, so do not commit them for others.")
    return notes


def _notes_on_copies(edits: Sequence[Edit]) -> list[str]:
    return [
        f"{edit.copy_of} was edited: its present text is kept as {edit.path}, where no client loads it."
        for edit in edits
        if edit.copy_of
    ]


def _notes_on_foreign_files(edits: Sequence[Edit], clients: Sequence[Client], target: InstallTarget) -> list[str]:
    whole = {part.path for client in clients for part in client.parts(target) if part.whole}
    return [
        f"{edit.path} no longer belongs to Esker, so it stays."
        for edit in edits
        if edit.path in whole and edit.after is not None and not edit.changes
    ]


def _notes_on_other_places(clients: Sequence[Client], target: InstallTarget, originals: Originals) -> list[str]:
    names = {client.name for client in clients}
    here = {part.path for client in clients for part in client.parts(target)}
    found = [kept.path for kept in originals.all() if kept.client in names and kept.path not in here]
    return [f"Esker remains in {path}, which belongs to another folder or scope." for path in found]


def _notes_on_earlier_entries(edits: Sequence[Edit], clients: Sequence[Client], target: InstallTarget) -> list[str]:
    found = restored_with_entries(edits, clients, target)
    return [
        f"{path} had an Esker entry before the installation; run this command again to remove that, too."
        for path in found
    ]


# Showing and writing -----------------------------------------------------------------------------------------------


def _carry_out(consent: _Consent, plan: _InstallPlan, originals: Originals, target: InstallTarget) -> None:
    """Show the changes, ask, and write them; exit with 1 if they were to be written and were not."""
    if not consent.as_json:
        _show(plan)
    wanted = bool(plan.edits) and not consent.dry_run
    written = wanted and _allowed(consent, plan)
    if written:
        apply(plan.edits, originals, shared=target.scope == PROJECT)
    if consent.as_json:
        print_json(_as_json(plan, written and bool(plan.changed)))
    else:
        _show_end(consent, plan, written)
    if wanted and not written:
        raise typer.Exit(1)


def _allowed(consent: _Consent, plan: _InstallPlan) -> bool:
    if consent.yes or not plan.changed:
        return True
    return not consent.as_json and sys.stdin.isatty() and typer.confirm("Write this?", default=False)


def _show(plan: _InstallPlan) -> None:
    for edit in plan.changed:
        _show_edit(edit)
    for client in plan.clients:
        if all(edit.client != client.name for edit in plan.changed):
            say(f"{client.name}: nothing to do.")
    for name, reason in plan.left_out.items():
        say(f"{name}: left out, {reason}.")


def _show_edit(edit: Edit) -> None:
    if edit.copy_of:
        say(f"{edit.path}: a copy of the present {edit.copy_of}")
        return
    diff = edit.diff()
    if any(len(line) > _LONGEST_READABLE for line in diff.split("\n")) and (spread := edit.spread()):
        say(f"{edit.path} has long lines; only this view puts each value on a line of its own:")
        diff = spread
    for line in diff.removesuffix("\n").split("\n"):
        say(line if len(line) <= _LONGEST_SHOWN else f"{line[:_LONGEST_SHOWN]}…")


def _show_end(consent: _Consent, plan: _InstallPlan, written: bool) -> None:
    if written:
        verbs = {"create": "created", "edit": "changed", "delete": "deleted"}
        for edit in plan.changed:
            say(f"{edit.client}: {verbs[edit.kind]} {edit.path}")
    elif plan.changed and consent.dry_run:
        say("Nothing was written because of --dry-run.")
    elif plan.changed:
        say("Nothing was written because it was not confirmed. Without a terminal, use --yes.")
    for text in [*plan.notes, *(plan.next_steps if written else ())]:
        note(text)


def _as_json(plan: _InstallPlan, written: bool) -> dict[str, object]:
    def files(client: Client) -> list[dict[str, str]]:
        mine = [edit for edit in plan.changed if edit.client == client.name]
        return [{"path": str(edit.path), "change": edit.kind, "diff": edit.diff()} for edit in mine]

    notes = [*plan.notes, *(plan.next_steps if written else ())]
    listed = [{"client": client.name, "files": files(client)} for client in plan.clients]
    return {"written": written, "clients": listed, "left_out": plan.left_out, "notes": notes}
