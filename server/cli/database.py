"""The database for commands that use it directly: keys, pools, migrations, checks."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from esker.server.cli.output import note
from esker.server.core.config.settings import Settings
from esker.server.core.errors import NotFound
from esker.server.db.database import Database
from esker.server.db.embedded import OWNER, embedded, is_made, prepare
from esker.server.db.migrate import Migration, migrate, pending
from esker.server.db.purge import Purged, purge
from esker.server.usecases.parts import Parts

Result = TypeVar("Result")


def settings_for(data_dir: Path | None) -> Settings:
    """Return the settings of a command; `data_dir` is its option, if it was given."""
    # The command itself reports why a connection failed.
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
    return Settings.from_environment(os.environ, data_dir=data_dir)


def lacking(settings: Settings) -> list[Migration]:
    """Return the migrations that the database lacks, without applying them. Raises NotFound without a database."""
    if address := settings.direct_database:
        return pending(address)
    _require(settings)
    with embedded(settings.data_dir, "command") as cluster:
        return pending(cluster.url(OWNER))


def _require(settings: Settings) -> None:
    if not is_made(settings.data_dir):
        raise NotFound(
            f"There is no database in {settings.data_dir} yet.",
            hint="`esker serve` creates one. If it is elsewhere, name its directory with --data-dir or ESKER_DATA_DIR.",
        )


def _make(settings: Settings) -> None:
    """Tell the user if a database is about to be created."""
    if not is_made(settings.data_dir):
        note(f"There is no database in {settings.data_dir} yet; creating one takes a few seconds.")


def migrated(settings: Settings) -> list[Migration]:
    """Bring the schema up to date and return what was applied."""
    if address := settings.direct_database:
        return migrate(address, note)
    _make(settings)
    with embedded(settings.data_dir, "command") as cluster:
        return prepare(cluster)


def purged(settings: Settings) -> Purged:
    """Remove deleted rows from the files of the database. Raises NotFound without a database, and Unavailable."""
    if address := settings.direct_database:
        return purge(address, None)
    _require(settings)
    with embedded(settings.data_dir, "command") as cluster:
        return purge(cluster.url(OWNER), cluster.directory / "log")


def with_database(
    settings: Settings, work: Callable[[Parts], Awaitable[Result]], *, may_be_first: bool = False
) -> Result:
    """Run `work` on the database and return its result; an embedded Postgres is started for it.

    A Postgres that this command starts is migrated first; that of a running server is not. Without a database, it is
    created if `may_be_first`, and otherwise NotFound is raised.
    """
    if settings.database_url:
        return asyncio.run(_do(work, settings, settings.database_url.get_secret_value()))
    (_make if may_be_first else _require)(settings)
    with embedded(settings.data_dir, "command") as cluster:
        if not cluster.joined:
            prepare(cluster)
        return asyncio.run(_do(work, settings, cluster.url()))


async def _do(work: Callable[[Parts], Awaitable[Result]], settings: Settings, url: str) -> Result:
    async with Database.configured(settings, url, connections=2) as database:
        parts = Parts(database, database.clock, settings)
        try:
            return await work(parts)
        finally:
            await parts.processes.close()
