"""`esker export`."""

import difflib
from collections.abc import Callable, Generator
from contextlib import aclosing, contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer

from esker.server.agents.api import Api
from esker.server.agents.install.disk import delete, read, write
from esker.server.agents.local_zone import local_zone
from esker.server.cli.connection import connect
from esker.server.cli.database import settings_for, with_database
from esker.server.cli.output import AsJson, DataDir, print_json, progress, say
from esker.server.cli.pool_file import Writing, replaced
from esker.server.cli.times import ACCEPTED, typed_time
from esker.server.core.counts import counted
from esker.server.core.errors import Conflict, InvalidInput
from esker.server.core.json_input import JsonObject
from esker.server.core.pool.daily_log import Logged, LoggedSession, daily_logs, first_line, is_log_name
from esker.server.core.pool.memory_file import Remembered, entries_of, merge
from esker.server.core.project_names import project_name
from esker.server.usecases.authenticate import require_pool
from esker.server.usecases.export import export as lines_of
from esker.server.usecases.parts import Parts

app = typer.Typer(add_completion=False)
exports = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Write a pool's memory into files: all of it, a MEMORY.md, daily logs.",
)
app.add_typer(exports, name="export")


def _stored_name(name: str | None) -> str | None:
    return project_name(name) if name else name


ExportedProject = Annotated[
    str | None,
    typer.Option(
        callback=_stored_name,
        help="Only this project, and rows without a project.",
    ),
]
_PAGE = 1_000
# Only the owner can read an exported file, unless they change its mode.
_MODE = 0o600


@contextmanager
def _file_errors(path: Path) -> Generator[None]:
    """Turn an OSError into an InvalidInput that names the file."""
    try:
        yield
    except OSError as error:
        raise InvalidInput(f"{error.filename or path}: {error.strerror or type(error).__name__}.") from error


# The whole pool ------------------------------------------------------------------------------------------------------


@exports.command("jsonl")
def jsonl(
    path: Annotated[Path, typer.Argument(help="The file to write; an existing one is replaced.")],
    pool: Annotated[
        str | None, typer.Option(help="A pool, read from the database; by default the key's, from the server.")
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Write everything that a pool remembers, one JSON document per line, for `esker import jsonl`."""
    with progress(shown=not as_json) as shown, _file_errors(path), replaced(path) as file:
        writing = Writing(file)
        task = shown.add_task("Exporting", total=None)

        def take(piece: bytes) -> None:
            writing.take(piece)
            shown.update(task, total=sum(writing.counts.values()) + 2, completed=writing.lines)

        if pool is None:
            for piece in connect().stream("/v1/export"):
                take(piece)
        else:
            with_database(settings_for(data_dir), lambda parts: _export(parts, pool, take))
        writing.finish()
    if as_json:
        print_json({"path": str(path), **writing.counts})
    else:
        say(f"{path}: {', '.join(counted_lines(writing.counts))}.")


async def _export(parts: Parts, name: str, take: Callable[[bytes], None]) -> None:
    pool = await require_pool(parts, name)
    async with aclosing(lines_of(parts, pool.id, pool.name)) as lines:
        async for line in lines:
            take(line)


def counted_lines(counts: dict[str, int]) -> list[str]:
    """Return the number of lines of each type, in words."""
    return [counted(count, name) for name, count in counts.items()]


# MEMORY.md -----------------------------------------------------------------------------------------------------------


@exports.command("memory-md")
def memory_md(
    path: Annotated[Path, typer.Argument(help="The file; an existing one, edited by hand, is extended.")],
    project: ExportedProject = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be added.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add facts of memory to a MEMORY.md. Existing lines stay, and no fact is added twice."""
    api = connect()
    rows = [*_all_memories(api, project, kind=["reflection", "manual"]), *_unreflected(api, project)]
    entries = entries_of((_remembered(row, project) for row in rows), ZoneInfo(local_zone() or "UTC"))
    before = _text_of(path)
    merged = merge(before, entries)
    changes = list(difflib.unified_diff(_lines(before), _lines(merged.text), str(path), str(path), lineterm=""))
    if not dry_run and merged.added:
        with _file_errors(path):
            if _text_of(path) != before:
                raise Conflict(f"{path} was changed meanwhile; nothing was written.", hint="Try again.")
            write(path, merged.text.encode(), _MODE)
    if as_json:
        added = [{"section": entry.section.title, "text": entry.text} for entry in merged.added]
        print_json({"path": str(path), "added": added, "known": merged.known, "written": bool(added) and not dry_run})
        return
    for line in changes:
        say(line)
    would = "would be added" if dry_run else "added"
    say(f"{path}: {counted(len(merged.added), 'line')} {would}, {merged.known:,} already there.")


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")


def _text_of(path: Path) -> str:
    with _file_errors(path):
        data = read(path)
    try:
        return (data or b"").decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8; nothing was written.") from error


def _unreflected(api: Api, project: str | None) -> list[JsonObject]:
    """Return the observations of high priority that are not sources of a reflection."""
    drawn_from = {source for row in _all_memories(api, project, kind=["reflection"]) for source in row["source_ids"]}
    found = _all_memories(api, project, kind=["observation"], min_priority="high")
    return [row for row in found if row["id"] not in drawn_from]


def _all_memories(api: Api, project: str | None, **which: Any) -> list[JsonObject]:
    rows: list[JsonObject] = []
    before = None
    while True:
        page = api.get("/v1/memories", project=project, before=before, limit=_PAGE, **which)
        rows += page["memories"]
        before = page["next"]
        if before is None:
            return rows


def _remembered(row: JsonObject, project: str | None) -> Remembered:
    names = ("content", "kind", "priority", "category", "facet", "tentative", "trust")
    said_at, created_at = (datetime.fromisoformat(row[name]) for name in ("said_at", "created_at"))
    whose = None if project else row["project"]
    return Remembered(**{name: row[name] for name in names}, said_at=said_at, created_at=created_at, project=whose)


# Daily logs ----------------------------------------------------------------------------------------------------------


@exports.command("daily")
def daily(
    folder: Annotated[Path, typer.Argument(help="The folder for a YYYY-MM-DD.md per day.", metavar="DIR")],
    project: ExportedProject = None,
    since: Annotated[str | None, typer.Option(help=f"Leave out days before this one: {ACCEPTED}.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a log for each day that has observations. Other files are left alone."""
    begin = typed_time("--since", since)
    first_day = begin.start.date() if begin else None
    api = connect()
    # A day begins up to 14 hours earlier in another time zone.
    from_when = f"{first_day - timedelta(days=1)}T00:00:00Z" if first_day else None
    rows = _all_memories(api, project, kind=["observation"], since=from_when, include_superseded="true")
    logs = daily_logs(map(_logged, rows), _logged_sessions(api), project, first_day)
    with _file_errors(folder):
        written, unchanged = _write_logs(folder, logs, project)
        deleted = _delete_stale(folder, logs, project, first_day)
    if as_json:
        print_json({"folder": str(folder), "written": written, "unchanged": unchanged, "deleted": deleted})
        return
    stale = f", {counted(len(deleted), 'log')} deleted (no observation left)" if deleted else ""
    say(f"{folder}: {counted(len(written), 'log')} written, {unchanged:,} unchanged{stale}.")


def _logged(row: JsonObject) -> Logged:
    names = ("id", "session_id", "content", "kind", "priority", "category", "tentative", "trust", "superseded_by")
    return Logged(**{name: row[name] for name in names}, said_at=datetime.fromisoformat(row["said_at"]))


def _logged_sessions(api: Api) -> dict[str, LoggedSession]:
    names = ("id", "client", "project", "timezone", "thread_title")
    found: dict[str, LoggedSession] = {}
    before = None
    while True:
        page = api.get("/v1/sessions", before=before, limit=_PAGE)
        found |= {row["id"]: LoggedSession(**{name: row[name] for name in names}) for row in page["sessions"]}
        before = page["next"]
        if before is None:
            return found


def _write_logs(folder: Path, logs: dict[str, str], project: str | None) -> tuple[list[str], int]:
    """Write changed logs; return their names, and the number of unchanged ones. If one is refused, none is written."""
    new: list[str] = []
    for name, text in logs.items():
        there = read(folder / name)
        if there is not None and not _is_log(there, project):
            raise Conflict(
                f"{folder / name} is not a log of Esker{f' for {project}' if project else ''}; nothing was written.",
                hint="Name another folder: each export rewrites the logs, and your notes would be lost.",
            )
        if there != text.encode():
            new.append(name)
    folder.mkdir(parents=True, exist_ok=True)
    for name in new:
        write(folder / name, logs[name].encode(), _MODE)
    return new, len(logs) - len(new)


def _delete_stale(folder: Path, logs: dict[str, str], project: str | None, since: date | None) -> list[str]:
    """Delete our logs of days without observations, since they may contain forgotten ones; return their names."""
    first = f"{since}.md" if since else ""
    found = sorted(file.name for file in folder.iterdir() if is_log_name(file.name) and file.is_file())
    stale = [name for name in found if name >= first and name not in logs and _is_log(read(folder / name), project)]
    for name in stale:
        delete(folder / name, ())
    return stale


def _is_log(data: bytes | None, project: str | None) -> bool:
    return data is not None and data.startswith(first_line(project).encode() + b"\n")
