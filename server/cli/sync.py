"""`esker sync`: a folder of Markdown files that people edit, and that comes back as corrections, pins and deletions."""

import os
from pathlib import Path
from typing import Annotated

import typer

from esker.server.cli.connection import connect
from esker.server.cli.output import AsJson, WrongUsage, print_json, say
from esker.server.cli.sync_pool import SyncScope, present_name
from esker.server.cli.sync_run import Sync, SyncReport
from esker.server.cli.sync_state import SyncState
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.counts import counted
from esker.server.core.project_names import project_name

app = typer.Typer(add_completion=False)

_MOST_SHOWN = 5


@app.command()
def sync(
    folder: Annotated[Path, typer.Argument(help="The folder with the files; it is created if it does not exist.")],
    project: Annotated[str | None, typer.Option(help="Only memories of this project.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Only show what would happen.")] = False,
    delete: Annotated[
        bool, typer.Option("--delete", help="Forget memories whose lines were deleted, however many.")
    ] = False,
    restore: Annotated[
        bool, typer.Option("--restore", help="Write deleted lines again instead of forgetting.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Synchronise memory with a folder of Markdown files, which people edit.

    Each line is a memory: edit it, move it to pinned.md, delete it, or write a new one.
    """
    if delete and restore:
        raise WrongUsage("--delete and --restore exclude each other.", hint="Give one of them.")
    if folder.exists() and not folder.is_dir():
        raise WrongUsage(f"{folder} is not a folder.", hint="Name a folder.")
    api = connect()
    key = api.get("/v1/key")
    name = present_name(api, key["pool"], project_name(project.strip())) if project else key["project"]
    scope = SyncScope(key["pool"], name)
    settings = ClientSettings.from_environment(os.environ)
    state = SyncState(settings.state_dir, folder, settings.url, scope.pool)
    with state.locked():
        report = Sync(api, folder, scope, state, check).run(delete=delete, restore=restore, ask=not as_json)
    if as_json:
        print_json(report)
    else:
        _show(report)
    if report.needs_attention:
        raise typer.Exit(1)


def _show(report: SyncReport) -> None:
    would = "Would " if report.check else ""
    for verb, ids, noun in (
        ("write", report.written, "new note"),
        ("correct", report.corrected, "memory"),
        ("forget", report.forgotten, "memory"),
        ("take into files", report.taken, "memory"),
        ("remove from files", report.dropped, "memory"),
    ):
        if ids:
            more = "…" if len(ids) > _MOST_SHOWN else ""
            say(f"{(would + verb).capitalize()}: {counted(len(ids), noun)}: {', '.join(ids[:_MOST_SHOWN])}{more}")
    for memory_id in report.conflicts:
        say(f"Conflict: {memory_id} changed in its file and in memory; the file shows both.")
    for path, count in report.unresolved.items():
        say(f"{path}: {counted(count, 'conflict is', 'conflicts are')} not resolved; delete the block when it is.")
    for problem in report.problems:
        say(f"{problem.path or report.folder}: {problem.reason}")
    if report.not_forgotten:
        say(
            f"The lines of {counted(len(report.not_forgotten), 'memory')} were deleted, and nothing is forgotten:"
            " --delete forgets them, --restore writes the lines again."
        )
    if not (report.files or report.check or report.needs_attention):
        say(f"{report.folder} is up to date.")
