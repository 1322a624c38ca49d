"""`esker migrate`, `pool`, `key`: commands that use the database directly, whether a server runs or not."""

import os
import sys
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Annotated, Literal

import typer

from esker.server.cli.database import migrated, settings_for, with_database
from esker.server.cli.install import install, keyless_clients
from esker.server.cli.output import AsJson, DataDir, WrongUsage, note, print_json, progress, say, table
from esker.server.core.config.settings import Settings
from esker.server.core.conversation.retention import Retention
from esker.server.core.counts import counted
from esker.server.core.records import KINDS, Kind, ListedKey, ListedPool
from esker.server.usecases import authenticate, spending
from esker.server.usecases.parts import Parts
from esker.server.usecases.retain import MOST_DAYS, set_pool_retention
from esker.server.usecases.spending import WhenSpent
from esker.server.usecases.switch_passages import Switched, switch_passages

app = typer.Typer(add_completion=False)
pools = typer.Typer(add_completion=False, no_args_is_help=True, help="Create, list and configure pools.")
keys = typer.Typer(add_completion=False, no_args_is_help=True, help="Create, list and revoke keys.")
app.add_typer(pools, name="pool")
app.add_typer(keys, name="key")

OnOff = Literal["on", "off"]
KeepDays = Annotated[int | None, typer.Option(min=0, max=MOST_DAYS, help="Days; 0: for ever.")]
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
    """Create a pool."""
    made = with_database(settings_for(data_dir), lambda parts: authenticate.create_pool(parts, name), may_be_first=True)
    if as_json:
        print_json(made)
    else:
        say(f"Created pool {made.name}. `esker key create NAME --pool {made.name}` creates a key for it.")


@pools.command("list")
def list_pools(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List all pools."""
    found = with_database(settings_for(data_dir), authenticate.list_pools)
    if as_json:
        print_json(found)
    else:
        table(("pool", "created", "has had a key", "passages"), map(_pool_row, found))


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
        float | None, typer.Option(min=0, help="The most that its models may cost in a day (UTC), in dollars.")
    ] = None,
    no_cap: Annotated[bool, typer.Option("--no-cap", help="Remove its own cap; the server's applies again.")] = False,
    when_spent: Annotated[
        WhenSpent | None,
        typer.Option(help="When the cap is reached: jobs wait for the next day, or continue without a model."),
    ] = None,
    passages: Annotated[
        OnOff | None,
        typer.Option(help="Whether recall also searches messages; off deletes their index."),
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Set a pool's daily cost cap, what happens when it is reached, and whether the pool has passages."""
    if daily_cap is not None and no_cap:
        raise WrongUsage("--daily-cap and --no-cap cannot be combined.")
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
    then = "jobs wait" if today.when_spent == "wait" else "it continues without a model"
    cap = f"may cost ${today.cap_usd:.2f} a day, and then {then}" if today.cap_usd is not None else "has no cap"
    say(f"Pool {name} {cap}. Today: ${today.spent_usd:.4f}.")
    if switched:
        say(_switched(name, switched))


@pools.command("keep")
def keep_pool(
    name: Annotated[str, typer.Argument(help="The pool.")] = authenticate.DEFAULT_POOL,
    messages: KeepDays = None,
    images: KeepDays = None,
    passages: KeepDays = None,
    memories: Annotated[
        list[str] | None,
        typer.Option(
            help="Days for memories of a kind, such as observation=365; can be repeated.", metavar="KIND=DAYS"
        ),
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show or set for how many days a pool keeps messages, images, passages and memories by kind; 0: for ever."""
    kinds: dict[Kind, int] = dict(map(_kind_and_days, memories or []))

    def change(kept: Retention) -> Retention:
        by_kind = dict(kept.memories_days) | kinds
        return Retention(
            messages_days=_days(messages, kept.messages_days),
            images_days=_days(images, kept.images_days),
            passages_days=_days(passages, kept.passages_days),
            memories_days={kind: days for kind, days in by_kind.items() if days},
        )

    kept = with_database(settings_for(data_dir), lambda parts: set_pool_retention(parts, name, change))
    if as_json:
        print_json(kept)
        return
    named: dict[str, int | None] = {"messages": kept.messages_days, "images": kept.images_days}
    named["passages"] = kept.passages_days
    named |= {f"memories of kind {kind}": days for kind, days in kept.memories_days.items()}
    for what, days in named.items():
        say(f"{what}: {counted(days, 'day') if days else 'for ever'}")


def _days(wanted: int | None, kept: int | None) -> int | None:
    """Return the wanted days, or what is set if none are given; 0 means for ever."""
    return kept if wanted is None else wanted or None


def _kind_and_days(text: str) -> tuple[Kind, int]:
    kind, _, days = text.partition("=")
    if kind not in KINDS or not days.isdecimal():
        raise typer.BadParameter(f"{text!r} is not KIND=DAYS. Kinds: {', '.join(KINDS)}.", param_hint="--memories")
    return kind, int(days)


def _switch(settings: Settings, pool: str, on: bool, *, shown: bool) -> Switched:
    with progress(shown=shown) as display:
        task = display.add_task("sessions to index" if on else "passages to delete", total=None)

        def show(done: int, total: int) -> None:
            display.update(task, completed=done, total=total)

        return with_database(settings, lambda parts: switch_passages(parts, pool, on=on, on_progress=show))


def _switched(pool: str, switched: Switched) -> str:
    if switched.on:
        return f"Pool {pool} has passages. Messages of {counted(switched.sessions, 'session')} were indexed."
    return f"Pool {pool} no longer has passages. {counted(switched.deleted, 'passage')} deleted; the messages stay."


@keys.command("create")
def create_key(
    name: Annotated[str, typer.Argument(help="The purpose of the key, such as the name of a machine.")],
    pool: PoolOption = authenticate.DEFAULT_POOL,
    scopes: Annotated[
        str | None,
        typer.Option(
            help="What it may do: read, write, forget, admin; separated by commas. Default: all but admin, and with"
            " --project read and write."
        ),
    ] = None,
    client: Annotated[str | None, typer.Option(help="The one client whose sessions it may write.")] = None,
    project: Annotated[
        str | None, typer.Option(help="The one project that it may read and write, beside what belongs to none.")
    ] = None,
    days: Annotated[int | None, typer.Option(min=1, max=36_500, help="Days until it expires.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Create a key and print it, only now. Once any pool has a key, every request needs one."""
    wanted = None if scopes is None else [scope.strip() for scope in scopes.split(",") if scope.strip()]
    if not name.strip():
        raise WrongUsage("A key needs a name.")
    made = with_database(
        settings_for(data_dir),
        lambda parts: authenticate.create_key(
            parts, name=name, pool=pool, scopes=wanted, client=client, project=project, days=days
        ),
        may_be_first=True,
    )
    if as_json:
        print_json({**asdict(made), "clients_without_key": keyless_clients()})
    else:
        say(made.key)
        note(f"The key is not shown again. It opens pool {made.pool} for {', '.join(made.scopes)}.{_bound(made)}")
        note("From now on every request needs a key, this command line too: set ESKER_KEY to it.")
        _offer_to_install_again(made.key)


def _bound(key: authenticate.NewKey) -> str:
    """Return sentences that say what a key is bound to."""
    client = f" It writes only sessions of {key.client}." if key.client else ""
    project = f" It sees and writes only project {key.project}, and reads what belongs to none." if key.project else ""
    return client + project


def _offer_to_install_again(key: str) -> None:
    """Say which clients of this machine send no key yet, and in a terminal offer to set them up again."""
    clients = keyless_clients()
    if not clients:
        return
    names = " ".join(clients)
    note(f"{', '.join(clients)}: their hooks and MCP servers send no key yet, so the server will refuse them.")
    if sys.stdin.isatty() and typer.confirm("Set them up again, so that they send ESKER_KEY?", default=True):
        os.environ["ESKER_KEY"] = key
        install(clients, with_key=True)
    else:
        note(f"Set ESKER_KEY where they start, and run `esker install {names} --with-key`.")


@keys.command("list")
def list_keys(pool: PoolOption = authenticate.DEFAULT_POOL, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the keys of a pool."""
    found, now = with_database(settings_for(data_dir), partial(_keys_and_time, pool=pool))
    if as_json:
        print_json(found)
        return
    rows = [
        (
            key.id,
            key.name,
            f"{key.prefix}…",
            ",".join(key.scopes),
            key.client or "any",
            key.project or "any",
            f"{key.created_at:%Y-%m-%d}",
            str(key.last_used_on or "never"),
            f"{key.expires_at:%Y-%m-%d}" if key.expires_at else "never",
            _state(key, now),
        )
        for key in found
    ]
    table(("id", "name", "key", "scopes", "client", "project", "created", "last used", "expires", "state"), rows)


async def _keys_and_time(parts: Parts, pool: str) -> tuple[list[ListedKey], datetime]:
    """Return the keys of a pool, and the time by which they expire, which is that of the database."""
    return await authenticate.list_keys(parts, pool), parts.clock()


def _state(key: ListedKey, now: datetime) -> str:
    if key.revoked_at:
        return "revoked"
    return "expired" if key.expires_at and key.expires_at <= now else "valid"


@keys.command("revoke")
def revoke_key(
    key: Annotated[str, typer.Argument(help="The id or the name of a key.")],
    pool: PoolOption = authenticate.DEFAULT_POOL,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a key at once. Requests need a key even after the last one is revoked."""
    revoked = with_database(settings_for(data_dir), lambda parts: authenticate.revoke_key(parts, key=key, pool=pool))
    if as_json:
        print_json({"revoked": revoked})
    else:
        say(f"Revoked {', '.join(revoked)}.")
