"""`esker reembed`: switch to another embedding model, and back."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.progress import Progress

from esker.server.cli.database import settings_for, with_database
from esker.server.cli.output import AsJson, DataDir, WrongUsage, errors, note, print_json, progress, say, table
from esker.server.core.config.settings import Settings
from esker.server.core.counts import counted
from esker.server.core.errors import Misconfigured
from esker.server.providers.embedders import embedder_of, make_embedder
from esker.server.usecases import reembed as verb
from esker.server.usecases.parts import Parts
from esker.server.usecases.reembed import SpaceStatus

app = typer.Typer(add_completion=False)


@app.command()
def reembed(
    to: Annotated[str | None, typer.Option(help="The model, as in ESKER_EMBEDDER, which is the default.")] = None,
    pool: Annotated[str | None, typer.Option(help="One pool; by default all.")] = None,
    status: Annotated[bool, typer.Option("--status", help="Show the models of each pool.")] = False,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Go back to the previous model, or give up a new one that is incomplete.")
    ] = False,
    drop_retired: Annotated[bool, typer.Option("--drop-retired", help="Delete the vectors of unused models.")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Switch to another embedding model, or back. Recall uses the present one until the other is complete."""
    if sum((to is not None, status, rollback, drop_retired)) > 1:
        raise WrongUsage("--to, --status, --rollback and --drop-retired exclude each other; use one.")
    settings = settings_for(data_dir)
    if status:
        _show(with_database(settings, lambda parts: verb.status(parts, pool)), as_json)
    elif rollback:
        _roll_back(settings, pool, as_json)
    elif drop_retired:
        _drop_retired(settings, pool, as_json)
    else:
        _reembed(settings, to, pool, as_json)


def _reembed(settings: Settings, to: str | None, pool: str | None, as_json: bool) -> None:
    with progress(shown=not as_json) as shown:
        found = with_database(settings, lambda parts: _embed_all(parts, to, pool, ReembedBars(shown)))
    _show(found, as_json)
    if not as_json:
        note(f"Recall uses it. Set ESKER_EMBEDDER={to or settings.embedder} for the server, too:")
        note("new pools then use that model, and its endpoint gets its key only then.")
        note("`esker reembed --rollback` goes back.")


async def _embed_all(parts: Parts, to: str | None, pool: str | None, steps: "ReembedBars") -> list[SpaceStatus]:
    embedder = make_embedder(parts.settings, to, "--to") if to is not None else embedder_of(parts.settings)
    if embedder is None:
        raise Misconfigured("There is no model to embed with.", hint="Name one: `esker reembed --to SETTING`.")
    try:
        return await verb.reembed(parts, embedder, steps, pool)
    finally:
        await embedder.close()


def _roll_back(settings: Settings, pool: str | None, as_json: bool) -> None:
    went = with_database(settings, lambda parts: verb.roll_back(parts, pool))
    if as_json:
        print_json(went)
        return
    for each in went:
        say(f"Pool {each.pool}: recall uses {each.model}, and no longer {each.left}.")
        if each.queued:
            say(f"  {counted(each.queued, 'text has', 'texts have')} no vector of it yet; a worker embeds them.")


def _drop_retired(settings: Settings, pool: str | None, as_json: bool) -> None:
    dropped = with_database(settings, lambda parts: verb.drop_retired(parts, pool))
    if as_json:
        print_json(dropped)
        return
    for each in dropped:
        say(f"Pool {each.pool}: {counted(each.vectors, 'vector')} of {each.model} deleted.")
    if not dropped:
        say("No pool has vectors of an unused model.")


def _show(found: list[SpaceStatus], as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    columns = ("pool", "model", "dimensions", "state", "texts", "missing", "waiting", "failed", "setting")
    table(
        columns,
        ((s.pool, s.model, s.dimension, s.state, s.texts, s.missing, s.waiting, s.failed, s.setting) for s in found),
    )


@dataclass(frozen=True, slots=True)
class ReembedBars:
    """Shows a re-embedding, a progress bar for each pool."""

    shown: Progress

    @contextmanager
    def step(self, what: str, total: int, done: int) -> Generator[Callable[[int], None]]:
        """Show a step of `total` texts, `done` of them before, while the block runs."""
        task = self.shown.add_task(what, total=total, completed=done)
        yield lambda more: self.shown.advance(task, more)

    def waits(self, why: str) -> None:
        """Show why the command waits."""
        if not self.shown.disable:
            errors.print(why, markup=False, style="dim")
