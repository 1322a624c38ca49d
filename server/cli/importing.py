"""`esker import`."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from esker.server.agents.api import Api
from esker.server.cli.connection import connect
from esker.server.cli.database import settings_for, with_database
from esker.server.cli.exporting import counted_lines
from esker.server.cli.output import AsJson, DataDir, print_json, progress, say
from esker.server.cli.pool_file import FilePart, check, halves, parts_of
from esker.server.core.counts import counted
from esker.server.core.errors import NotFound, TooLarge
from esker.server.core.http_answers import ServerRefused
from esker.server.core.json_input import JsonObject
from esker.server.core.records import Principal
from esker.server.usecases.authenticate import SCOPES, require_pool
from esker.server.usecases.import_pool import import_pool
from esker.server.usecases.parts import Parts

app = typer.Typer(add_completion=False)
imports = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Read a file that `esker export jsonl` has written."
)
app.add_typer(imports, name="import")

_TOO_LARGE = 413


@imports.command("jsonl")
def jsonl(
    path: Annotated[Path, typer.Argument(help="A file that `esker export jsonl` has written.")],
    pool: Annotated[
        str | None, typer.Option(help="A pool, written to the database; by default the key's pool, through the server.")
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Read a file that `esker export jsonl` has written. Existing records stay; a second import changes nothing."""
    if not path.is_file():
        raise NotFound(f"The file {path} does not exist.")
    total = check(path)
    new: Counter[str] = Counter()
    known: Counter[str] = Counter()
    forgotten = 0
    with progress(shown=not as_json) as shown:
        task = shown.add_task("Importing", total=total - 1)

        def done(part: FilePart, report: JsonObject) -> None:
            nonlocal forgotten
            forgotten += report["forgotten"]
            new.update(report["new"])
            known.update(report["known"])
            shown.advance(task, part.size)

        if pool is None:
            _send_all(connect(), parts_of(path), done)
        else:
            settings = settings_for(data_dir)
            with_database(settings, lambda parts: _import_all(parts, pool, parts_of(path), done), may_be_first=True)
    if as_json:
        print_json({"new": new, "known": known, "forgotten": forgotten})
    else:
        say(f"New: {', '.join(counted_lines(new))}.")
        if known.total():
            say(f"Already there: {', '.join(counted_lines({n: count for n, count in known.items() if count}))}.")
        if forgotten:
            say(f"Left out: {counted(forgotten, 'memory', 'memories')} that say what was forgotten in this pool.")


def _send_all(api: Api, parts: Iterator[FilePart], done: Callable[[FilePart, JsonObject], None]) -> None:
    for part in parts:
        _send(api, part, done)


def _send(api: Api, part: FilePart, done: Callable[[FilePart, JsonObject], None]) -> None:
    """Send a part, or its halves if it is too large for the server."""
    try:
        done(part, api.post_lines(f"/v1/import?first_line={part.first_line}", part.lines))
    except ServerRefused as error:
        if error.status != _TOO_LARGE:
            raise
        if part.size == 1:
            hint = "Raise ESKER_MAX_BODY_BYTES of the server, or import into its database with --pool."
            raise TooLarge(
                f"Line {part.first_line} is larger than the server's limit for a body.", hint=hint
            ) from error
        for half in halves(part):
            _send(api, half, done)


async def _import_all(
    parts: Parts, name: str, of_file: Iterator[FilePart], done: Callable[[FilePart, JsonObject], None]
) -> None:
    pool = await require_pool(parts, name)
    operator = Principal(pool.id, pool.name, "operator", frozenset(SCOPES))
    for part in of_file:
        done(part, asdict(await import_pool(parts, operator, part.lines, part.first_line)))
