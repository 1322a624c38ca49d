"""`esker backup` and `esker restore`."""

import asyncio
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from esker.server.cli.database import settings_for
from esker.server.cli.database_findings import invariants
from esker.server.cli.output import AsJson, DataDir, WrongUsage, note, print_json, progress, say
from esker.server.cli.times import ACCEPTED, typed_time
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.core.counts import counted
from esker.server.core.errors import Conflict, InvalidInput, NotFound
from esker.server.core.records import Principal
from esker.server.db import dumps, restoring
from esker.server.db.archive import flush, is_archiving, noted
from esker.server.db.backup_folder import BackupFolder
from esker.server.db.database import Database
from esker.server.db.embedded import DATABASE, OWNER, embedded, is_made, prepare, recovered
from esker.server.db.migrate import migrate
from esker.server.db.restoring import Kept
from esker.server.usecases.check_invariants import check_invariants
from esker.server.usecases.forget_again import ForgottenAgain, forget_again
from esker.server.usecases.parts import Parts
from esker.server.usecases.probe_recall import Probed, probe_recall

app = typer.Typer(add_completion=False)


@dataclass(frozen=True, slots=True)
class Place:
    """The owner's URL of the database that a command works on, and the URL from which it can be replaced."""

    url: str
    admin_url: str
    exists: bool = True


@app.command("backup")
def backup(
    path: Annotated[Path | None, typer.Argument(help="A file, or a folder for one that is named by the time.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an existing file.")] = False,
    keep: Annotated[
        int | None, typer.Option(min=1, help="Keep this many backups in the folder, and delete older ones.")
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Write the whole database into one file, as it is at one moment; servers keep running."""
    settings = settings_for(data_dir)
    path = _named(path, settings)
    folder = BackupFolder(path, timedelta(0), keep or settings.backup_keep) if path.is_dir() else None
    if keep and not folder:
        raise InvalidInput(f"{path} is not a folder; --keep deletes older backups of one.", hint="Name a folder.")
    target = folder.file(system_clock()) if folder else path
    if target.exists() and not replace:
        raise Conflict(f"{target} exists already; nothing was written.", hint="--replace replaces it.")
    if not target.parent.is_dir():
        raise NotFound(f"The folder {target.parent} does not exist.")
    with ExitStack() as stack:
        if folder and not stack.enter_context(folder.held()):
            raise Conflict(f"Another backup is being written into {path}.", hint="Wait for it, or name another folder.")
        place = stack.enter_context(_present(settings))
        shown = stack.enter_context(progress(shown=not as_json))
        task = shown.add_task("tables", total=None)
        made = dumps.dump(place.url, target, lambda done, total: shown.update(task, completed=done, total=total))
        deleted = folder.delete_old() if folder and keep else []
    if as_json:
        print_json({"path": str(made.path), "bytes": made.bytes, "deleted": [str(old) for old in deleted]})
        return
    say(f"{made.path}: {made.bytes / 1024**2:.1f} MiB. It contains everything, keys' hashes included; keep it safe.")
    if deleted:
        say(f"Deleted {counted(len(deleted), 'older backup')}.")


def _named(path: Path | None, settings: Settings) -> Path:
    path = path or settings.backup_dir
    if path is None:
        raise WrongUsage("No file is named.", hint="Name a file or a folder, or set ESKER_BACKUP_DIR.")
    return path.absolute()


@contextmanager
def _present(settings: Settings) -> Generator[Place]:
    """Yield the database that exists; an embedded Postgres is started if no server runs it. Raises NotFound."""
    if url := settings.direct_database:
        yield Place(url, url)
        return
    if not is_made(settings.data_dir):
        raise NotFound(f"There is no database in {settings.data_dir}.", hint="Name its directory with --data-dir.")
    with embedded(settings.data_dir, "command") as cluster:
        yield Place(cluster.url(OWNER), cluster.url(OWNER, "postgres"))


# Restore -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a restore: the findings of the checks, and what was kept from the replaced database."""

    migrations: list[str]
    invariants: int
    recall: Probed
    kept: Kept
    forgotten: dict[str, ForgottenAgain]


@app.command("restore")
def restore(
    path: Annotated[
        Path | None, typer.Argument(help="A file that `esker backup` has written; with --at an archive.")
    ] = None,
    at: Annotated[
        str | None, typer.Option(help=f"Restore this moment from the archive: latest, {ACCEPTED}.", metavar="TIME")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace memories that are stored already.")] = False,
    despite_violations: Annotated[
        bool, typer.Option("--despite-violations", help="Restore it even if it breaks invariants.")
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Restore a backup, check it, and put it in the place of the database. Servers must be stopped."""
    settings = settings_for(data_dir)
    moment = _moment(at)
    if path is None and at is None:
        raise WrongUsage("No backup is named.", hint="Name a file, or a moment of the archive with --at.")
    if path is not None and at is None:
        # Check a file before anything is created; an archive is checked after its recovery.
        dumps.require_whole(path)
    with _target(settings) as place, progress(shown=not as_json) as shown, ExitStack() as stack:
        task = shown.add_task("parts of the backup", total=None)

        def on_progress(done: int, total: int) -> None:
            shown.update(task, completed=done, total=total)

        if place.exists:
            restoring.require_replaceable(place.url, replace=replace)
        if at is not None or path is None:
            path = stack.enter_context(_of_moment(settings, place, path, moment))
        if place.exists and restoring.is_free(place.url):
            restoring.play(path, place.url, on_progress)
            done = _checked(settings, place.url, Kept(), despite_violations)
        else:
            with restoring.beside(place.url, place.admin_url) as fresh_url:
                restoring.play(path, fresh_url, on_progress)
                done = _completed(settings, place, fresh_url, despite_violations)
    if as_json:
        print_json(done)
    else:
        _say(str(path) if at is None else f"the database of {at}", done)


def _moment(at: str | None) -> datetime | None:
    """Return the moment that an option names; None for the end of the archive."""
    named = None if at in (None, "latest") else typed_time("--at", at)
    return named.start if named else None


@contextmanager
def _of_moment(settings: Settings, place: Place, folder: Path | None, at: datetime | None) -> Generator[Path]:
    """Yield a backup of a moment of the archive, which is made from a copy of the cluster as it was then."""
    folder = folder or settings.archive_dir or noted(settings.data_dir)
    if folder is None or settings.database_url:
        raise InvalidInput("There is no archive.", hint="Set ESKER_ARCHIVE_DIR for an embedded Postgres.")
    if is_archiving(place.admin_url):
        # The archive lacks the latest writes until they are flushed.
        flush(place.admin_url)
    dump = settings.data_dir / "recovering.dump"
    try:
        note("Recovering a copy of the database from the archive.")
        with recovered(settings.data_dir, folder.absolute(), at) as url:
            dumps.dump(url, dump, lambda done, total: None)
        yield dump
    finally:
        dump.unlink(missing_ok=True)


@contextmanager
def _target(settings: Settings) -> Generator[Place]:
    """Yield the database to restore; an embedded Postgres is made if none exists. Raises Conflict if a server runs."""
    if url := settings.direct_database:
        yield Place(url, url)
        return
    if not is_made(settings.data_dir):
        note(f"There is no database in {settings.data_dir} yet; creating one takes a few seconds.")
    with embedded(settings.data_dir, "command") as cluster:
        if cluster.joined:
            raise Conflict(f"A server runs on {settings.data_dir}.", hint="Stop it first.")
        url, admin_url = cluster.url(OWNER), cluster.url(OWNER, "postgres")
        restoring.finish(url, admin_url)
        yield Place(url, admin_url, restoring.exists(admin_url, DATABASE))
        prepare(cluster)


def _completed(settings: Settings, place: Place, fresh_url: str, despite_violations: bool) -> Restored:
    """Migrate a restored database, and copy decisions made since the backup into it: revoked keys and forgettings."""
    applied = migrate(fresh_url)
    kept = restoring.keep_decisions(place.url, fresh_url) if place.exists else Kept()
    return _checked(settings, fresh_url, kept, despite_violations, [f"{one.version:04d} {one.name}" for one in applied])


def _checked(
    settings: Settings, url: str, kept: Kept, despite_violations: bool, applied: list[str] | None = None
) -> Restored:
    if applied is None:
        applied = [f"{one.version:04d} {one.name}" for one in migrate(url)]
    return asyncio.run(_check(settings, url, kept, despite_violations, applied))


async def _check(settings: Settings, url: str, kept: Kept, despite_violations: bool, applied: list[str]) -> Restored:
    """Forget again what was forgotten since the backup, and check the rest. Raises InvalidInput for a wrong backup."""
    async with Database(url, connections=2) as database:
        parts = Parts(database, system_clock, settings)
        try:
            again = {
                pool_id: await forget_again(parts, Principal(pool_id, pool_id, "restore", frozenset()), receipts)
                for pool_id, receipts in kept.receipts.items()
            }
            checked = await check_invariants(parts)
            probed = await probe_recall(parts)
        finally:
            await parts.processes.close()
    wrong = [finding.what for finding in invariants(checked) if finding.status == "wrong"]
    if wrong and not despite_violations:
        raise InvalidInput(
            f"The backup is not right: {' '.join(wrong)}",
            hint="Use another backup, or put this one in place with --despite-violations.",
        )
    return Restored(applied, checked.checks, probed, kept, again)


def _say(name: str, done: Restored) -> None:
    probed = f"recall answers {done.recall.found} of {counted(done.recall.asked, 'question')}"
    say(f"Restored {name}: {counted(done.invariants, 'invariant')} hold, and {probed}.")
    if done.migrations:
        say(f"The backup was older: applied {', '.join(done.migrations)}.")
    for again in done.forgotten.values():
        gone = ((again.memories, "memory"), (again.messages, "message"), (again.notes, "note"))
        say(f"Forgotten again, as since the backup: {', '.join(counted(*each) for each in gone)}.")
        if again.left:
            found = ", ".join(f"{count} in {place}" for place, count in sorted(again.left.items()))
            say(f"Not found again by its words alone, so still there: {found}. `esker forget --words` forgets it.")
    for pool in done.recall.silent:
        say(f"Recall finds none of the newest memories of pool {pool}; try it with a question of your own.")
    if done.kept.unknown:
        pools = ", ".join(done.kept.unknown)
        say(f"The backup is of another installation, so forgettings in {pools} were lost: forget those things again.")
    if done.kept.revoked_keys:
        say(f"{counted(done.kept.revoked_keys, 'key')} revoked since the backup stay revoked.")
    say("Messages since the backup: `esker ingest --all --again` sends what the agents still have.")
