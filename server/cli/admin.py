"""`esker migrate`, `pool`, `key`: they work on the database itself, with or without a server running."""

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Literal

import typer

from esker.server.cli.database import migrated, settings_for, with_database
from esker.server.cli.output import AsJson, DataDir, note, print_json, progress, say, table
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.core.counts import counted
from esker.server.core.errors import InvalidInput
from esker.server.core.records import ListedKey, ListedPool
from esker.server.usecases import authenticate, spending
from esker.server.usecases.spending import WhenSpent
from esker.server.usecases.switch_passages import Switched, switch_passages

app = typer.Typer(add_completion=False)
pools = typer.Typer(add_completion=False, no_args_is_help=True, help="Make, list and set up pools.")
keys = typer.Typer(add_completion=False, no_args_is_help=True, help="Make, list and revoke keys.")
app.add_typer(pools, name="pool")
app.add_typer(keys, name="key")

OnOff = Literal["on", "off"]
PoolOption = Annotated[str, typer.Option("--pool", help="The pool that the key opens.")]


@app.command("migrate")
def migrate_command(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Bring the database's schema up to date."""
    applied = [f"{migration.version:04d} {migration.name}" for migration in migrated(settings_for(data_dir))]
    if as_json:
        print_json({"applied": applied})
    else:
        say(f"Applied {', '.join(applied)}." if applied else "The schema is up to date.")


@pools.command("create")
def create_pool(
    name: Annotated[str, typer.Argument(help="a-z, 0-9, '-' and '_'.")],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a pool."""
    made = with_database(settings_for(data_dir), lambda parts: authenticate.create_pool(parts, name), may_be_first=True)
    if as_json:
        print_json(made)
    else:
        say(f"Pool {made.name} is made. `esker key create NAME --pool {made.name}` makes a key for it.")


@pools.command("list")
def list_pools(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List all pools."""
    found = with_database(settings_for(data_dir), authenticate.list_pools)
    if as_json:
        print_json(found)
    else:
        table(("pool", "made", "has had a key", "passages"), map(_pool_row, found))


def _pool_row(pool: ListedPool) -> tuple[str, ...]:
    return (
        pool.name,
        f"{pool.created_at:%Y-%m-%d}",
        "yes" if pool.keys_required else "no",
        "on" if pool.passages else "off",
    )


@pools.command("set")
def set_pool(
    name: Annotated[str, typer.Argument(help="The pool.")] = authenticate.DEFAULT_POOL,
    daily_cap: Annotated[
        float | None, typer.Option(min=0, help="Dollars that its models may cost in a day (UTC).")
    ] = None,
    no_cap: Annotated[bool, typer.Option("--no-cap", help="Take its own cap away; the server's holds again.")] = False,
    when_spent: Annotated[
        WhenSpent | None, typer.Option(help="What happens then: jobs wait for the next day, or go on without a model.")
    ] = None,
    passages: Annotated[
        OnOff | None,
        typer.Option(help="Whether messages are searched word for word; off deletes the index."),
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Say what a pool's language models may cost in a day and what happens then, and whether it has passages."""
    if daily_cap is not None and no_cap:
        raise InvalidInput("A pool has a cap or none.")
    settings = settings_for(data_dir)
    today = with_database(
        settings,
        lambda parts: spending.set_daily_cap(parts, name, cap_usd=daily_cap, without_own=no_cap, when_spent=when_spent),
        may_be_first=True,
    )
    switched = _switch(settings, name, passages == "on", shown=not as_json) if passages else None
    if as_json:
        print_json({**asdict(today), **({"passages": switched} if switched else {})})
        return
    then = "jobs wait" if today.when_spent == "wait" else "it goes on without a model"
    cap = f"may cost ${today.cap_usd:.2f} a day, and then {then}" if today.cap_usd is not None else "has no cap"
    say(f"Pool {name} {cap}. Today: ${today.spent_usd:.4f}.")
    if switched:
        say(_switched(name, switched))


def _switch(settings: Settings, pool: str, on: bool, *, shown: bool) -> Switched:
    with progress(shown=shown) as display:
        task = display.add_task("sessions to index" if on else "passages to delete", total=None)

        def told(done: int, total: int) -> None:
            display.update(task, completed=done, total=total)

        return with_database(settings, lambda parts: switch_passages(parts, pool, on=on, on_progress=told))


def _switched(pool: str, switched: Switched) -> str:
    if switched.on:
        return f"Pool {pool} has passages. {counted(switched.sessions, 'session')} had messages to index."
    return f"Pool {pool} has no passages any more. {counted(switched.deleted, 'passage')} went; the messages stay."


@keys.command("create")
def create_key(
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    pool: PoolOption = authenticate.DEFAULT_POOL,
    scopes: Annotated[str, typer.Option(help="What it may do, separated by commas.")] = "read,write",
    days: Annotated[int | None, typer.Option(min=1, max=36_500, help="Days until it expires.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it, this once. From the first key on, every request needs one."""
    wanted = [scope.strip() for scope in scopes.split(",") if scope.strip()]
    if not name.strip():
        raise InvalidInput("A key needs a name.")
    expires = system_clock() + timedelta(days=days) if days else None
    made = with_database(
        settings_for(data_dir),
        lambda parts: authenticate.create_key(parts, name=name, pool=pool, scopes=wanted, expires=expires),
        may_be_first=True,
    )
    if as_json:
        print_json(made)
    else:
        say(made.key)
        note(f"This is the only time that the key is shown. It opens pool {made.pool} for {', '.join(made.scopes)}.")
        note(f"Every request needs a key from now on, also those of this command line: export ESKER_KEY={made.key}")


@keys.command("list")
def list_keys(pool: PoolOption = authenticate.DEFAULT_POOL, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the keys of a pool."""
    found = with_database(settings_for(data_dir), lambda parts: authenticate.list_keys(parts, pool))
    if as_json:
        print_json(found)
        return
    rows = [
        (key.id, key.name, f"{key.prefix}…", ",".join(key.scopes), f"{key.created_at:%Y-%m-%d}", _state(key))
        for key in found
    ]
    table(("id", "name", "key", "scopes", "made", "state"), rows)


def _state(key: ListedKey) -> str:
    if key.revoked_at:
        return "revoked"
    return "expired" if key.expires_at and key.expires_at <= system_clock() else "valid"


@keys.command("revoke")
def revoke_key(
    key: Annotated[str, typer.Argument(help="The id or the name of a key.")],
    pool: PoolOption = authenticate.DEFAULT_POOL,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a key at once. Keys stay required, also after the last one."""
    revoked = with_database(settings_for(data_dir), lambda parts: authenticate.revoke_key(parts, key=key, pool=pool))
    if as_json:
        print_json({"revoked": revoked})
    else:
        say(f"Revoked {', '.join(revoked)}.")
