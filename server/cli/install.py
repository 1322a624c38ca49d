"""`esker install` and `esker uninstall`: set agent CLIs up for Esker, and undo that."""

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from esker.server.agents.install.applying import apply
from esker.server.agents.install.client import KEY_VARIABLE, PROJECT, USER, Client, InstallTarget, check_address
from esker.server.agents.install.clients import CLIENTS
from esker.server.agents.install.edits import Edit, edits_to_install, edits_to_uninstall, restored_with_entries
from esker.server.agents.install.originals import Originals
from esker.server.cli.connection import connect
from esker.server.cli.output import AsJson, WrongUsage, note, print_json, say
from esker.server.core.config.client_settings import ClientSettings, state_dir
from esker.server.core.config.exclusion_list import ExclusionList
from esker.server.core.config.home import home
from esker.server.core.config.kept_keys import KeptKeys
from esker.server.core.errors import Misconfigured, NotFound

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
class _StateChange:
    """A change of a file in the state directory."""

    text: str
    write: Callable[[], object]


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
    state_changes: list[_StateChange] = field(default_factory=list[_StateChange])

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
        bool | None,
        typer.Option(
            "--with-key/--without-key",
            help=f"Have clients send the key in {KEY_VARIABLE}, or not. By default they do if it is set here, or if an"
            " earlier installation had them do so.",
        ),
    ] = None,
    keep_key: Annotated[
        bool,
        typer.Option(
            "--keep-key",
            help=f"Also keep the key in {KEY_VARIABLE} in the state directory, readable by you alone, for hooks whose"
            " client does not pass its environment on (Codex in a terminal).",
        ),
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Set agent CLIs up for Esker: its MCP server and its hooks. Shows the changes and asks before it writes them."""
    settings = _settings()
    originals = Originals(settings.state_dir / _ORIGINALS)
    if with_key is None:
        with_key = settings.key is not None or _sends_key(originals, clients or [])
    target = _target(settings, scope, with_key=with_key)
    check_address(settings.url)
    left_out = _absent_clients(target) if everything and not clients else {}
    chosen = _chosen_clients(clients, everything, target, left_out)
    edits = edits_to_install(chosen, target, originals)
    changes = any(edit.changes for edit in edits)
    notes = [*_notes_on_copies(edits), *_install_notes(target)] if changes else []
    next_steps = [text for client in chosen for text in client.notes] + [_RESTART] if changes else []
    plan = _InstallPlan(chosen, edits, notes, next_steps, left_out, _state_changes(settings, keep_key=keep_key))
    _carry_out(_Consent(yes, dry_run, as_json), plan, originals, target)


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
    kept = KeptKeys(settings.state_dir)
    forget_key = _StateChange(f"{kept.path}: delete the key for {settings.url}", partial(kept.drop, settings.url))
    originals = Originals(settings.state_dir / _ORIGINALS)
    edits = edits_to_uninstall(chosen, target, originals)
    notes = [
        *_notes_on_copies(edits),
        *_notes_on_foreign_files(edits, chosen, target),
        *_notes_on_other_places(chosen, target, originals),
    ]
    _carry_out(
        _Consent(yes, dry_run, as_json),
        _InstallPlan(
            chosen,
            edits,
            notes,
            _notes_on_earlier_entries(edits, chosen, target),
            state_changes=[forget_key] if everything and kept.key(settings.url) else [],
        ),
        originals,
        target,
    )


def keyless_clients() -> list[str]:
    """Return the clients that are set up on this machine and send no key. Raises Misconfigured."""
    originals = Originals(state_dir(os.environ) / _ORIGINALS)
    with_key: dict[str, bool] = {}
    for original in originals.all():
        with_key[original.client] = with_key.get(original.client, False) or _names_key(original.path)
    return [client for client, has_key in with_key.items() if not has_key]


def _sends_key(originals: Originals, clients: Sequence[str]) -> bool:
    """Return whether one of these clients, or of all if none is named, is set up to send the key."""
    return any(_names_key(each.path) for each in originals.all() if not clients or each.client in clients)


def _names_key(path: Path) -> bool:
    try:
        return KEY_VARIABLE.encode() in path.read_bytes()
    except OSError:
        return False


# Changes --------------------------------------------------------------------------------------------------------------


def _settings() -> ClientSettings:
    connect()  # validates the settings; sends nothing
    return ClientSettings.from_environment(os.environ)


def _state_changes(settings: ClientSettings, *, keep_key: bool) -> list[_StateChange]:
    """Return what hooks should know wherever a client starts them: the exclusions, and the key if that is wanted.

    Raises Misconfigured if there is no key to keep.
    """
    changes: list[_StateChange] = []
    listed = ExclusionList(settings.state_dir)
    if new := [pattern for pattern in settings.exclude if pattern not in listed.patterns()]:
        changes.append(_StateChange(f"{listed.path}: add {', '.join(new)}", partial(listed.add, new)))
    if keep_key and not settings.key:
        raise Misconfigured(f"--keep-key needs a key, but {KEY_VARIABLE} is not set.", hint=f"Set {KEY_VARIABLE}.")
    if keep_key and settings.key:
        kept = KeptKeys(settings.state_dir)
        text = f"{kept.path}: keep the key for {settings.url}"
        changes.append(_StateChange(text, partial(kept.keep, settings.url, settings.key)))
    return changes


def _target(settings: ClientSettings, scope: str, *, with_key: bool) -> InstallTarget:
    if scope not in (USER, PROJECT):
        raise WrongUsage(f"The scope {scope!r} does not exist.", hint=f"Use {USER} or {PROJECT}.")
    return InstallTarget(home(), Path.cwd(), os.environ, _program(), settings.url, settings.state_dir, with_key, scope)


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
    """Return the named clients, or those found on this machine. Raises WrongUsage."""
    if bool(names) == everything:
        raise WrongUsage("Name either clients or --all.", hint=f"The clients are {', '.join(CLIENTS)}.")
    if everything:
        return [each for name, each in CLIENTS.items() if name not in left_out and target.scope in each.scopes]
    if unknown := [name for name in names or () if name not in CLIENTS]:
        raise WrongUsage(f"Unknown client {unknown[0]!r}.", hint=f"Use {', '.join(CLIENTS)}, or --all.")
    clients = [CLIENTS[name] for name in dict.fromkeys(names or ())]
    for client in clients:
        if target.scope not in client.scopes:
            raise WrongUsage(f"{client.name} can only be set up for a user, not for a {target.scope}.")
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
    notes.append(f"Hooks connect to {target.url} and keep their state in {target.state_dir}, wherever a client starts.")
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
    wanted = bool(plan.edits or plan.state_changes) and not consent.dry_run
    written = wanted and _allowed(consent, plan)
    if written:
        apply(plan.edits, originals, shared=target.scope == PROJECT)
        for change in plan.state_changes:
            change.write()
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
    for change in plan.state_changes:
        say(change.text)


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
    state = [change.text for change in plan.state_changes]
    return {"written": written, "clients": listed, "left_out": plan.left_out, "state": state, "notes": notes}
