"""`esker migrate`, `pool`, `key`: they work on the database itself, with or without a server running."""

import os
from datetime import timedelta
from typing import Annotated

import typer

from server.cli.database import migrated, with_database
from server.cli.output import AsJson, print_json, say, table
from server.core.clock import system_clock
from server.core.errors import InvalidInput
from server.core.settings import Settings
from server.usecases import authenticate

app = typer.Typer()
pools = typer.Typer(no_args_is_help=True, help="Make and list pools.")
keys = typer.Typer(no_args_is_help=True, help="Make, list and revoke keys.")
app.add_typer(pools, name="pool")
app.add_typer(keys, name="key")

PoolOption = Annotated[str, typer.Option("--pool", help="The pool that the key opens.")]


@app.command("migrate")
def migrate_command(as_json: AsJson = False) -> None:
    """Bring the database's schema up to date."""
    applied = [f"{migration.version:04d} {migration.name}" for migration in migrated(_settings())]
    if as_json:
        print_json({"applied": applied})
    else:
        say(f"Applied {', '.join(applied)}." if applied else "The schema is up to date.")


@pools.command("create")
def create_pool(name: Annotated[str, typer.Argument(help="a-z, 0-9, '-' and '_'.")], as_json: AsJson = False) -> None:
    """Make a pool."""
    made = with_database(lambda parts: authenticate.create_pool(parts, name))
    if as_json:
        print_json(made)
    else:
        say(f"Pool {made.name} is made. `esker key create NAME --pool {made.name}` makes a key for it.")


@pools.command("list")
def list_pools(as_json: AsJson = False) -> None:
    """List all pools."""
    found = with_database(authenticate.list_pools)
    if as_json:
        print_json(found)
    else:
        table(("pool", "made", "keys"), [(p.name, f"{p.created_at:%Y-%m-%d}", _needs(p.keys_required)) for p in found])


def _needs(required: bool) -> str:
    return "required" if required else "none yet"


@keys.command("create")
def create_key(
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    pool: PoolOption = authenticate.DEFAULT_POOL,
    scopes: Annotated[str, typer.Option(help="What it may do, separated by commas.")] = "read,write",
    days: Annotated[int | None, typer.Option(min=1, help="Days until it expires.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it, this once. From the first key on, every request needs one."""
    wanted = [scope.strip() for scope in scopes.split(",") if scope.strip()]
    if not name.strip():
        raise InvalidInput("A key needs a name.")
    expires = system_clock() + timedelta(days=days) if days else None
    made = with_database(
        lambda parts: authenticate.create_key(parts, name=name, pool=pool, scopes=wanted, expires=expires)
    )
    if as_json:
        print_json(made)
    else:
        say(made.key)
        say(f"This is the only time that the key is shown. It opens pool {made.pool} for {', '.join(made.scopes)}.")


@keys.command("list")
def list_keys(pool: PoolOption = authenticate.DEFAULT_POOL, as_json: AsJson = False) -> None:
    """List the keys of a pool."""
    found = with_database(lambda parts: authenticate.list_keys(parts, pool))
    if as_json:
        print_json(found)
        return
    rows = [
        (key.id, key.name, f"{key.prefix}…", ",".join(key.scopes), f"{key.created_at:%Y-%m-%d}", _state(key.revoked_at))
        for key in found
    ]
    table(("id", "name", "key", "scopes", "made", "state"), rows)


def _state(revoked_at: object) -> str:
    return "revoked" if revoked_at else "valid"


@keys.command("revoke")
def revoke_key(
    key: Annotated[str, typer.Argument(help="The id or the name of a key.")],
    pool: PoolOption = authenticate.DEFAULT_POOL,
    as_json: AsJson = False,
) -> None:
    """Revoke a key at once. Keys stay required, also after the last one."""
    revoked = with_database(lambda parts: authenticate.revoke_key(parts, key=key, pool=pool))
    if as_json:
        print_json({"revoked": revoked})
    else:
        say(f"Revoked {', '.join(revoked)}.")


def _settings() -> Settings:
    return Settings.from_environment(os.environ)
