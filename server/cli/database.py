"""The database for commands that work on it directly: keys, pools, migrations, checks."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

from server.core.clock import system_clock
from server.core.settings import Settings
from server.db.database import Database
from server.db.embedded import OWNER, embedded, prepare
from server.db.migrate import Migration, migrate
from server.usecases.parts import Parts

Result = TypeVar("Result")


@contextmanager
def owner_url(settings: Settings) -> Generator[str]:
    """Yield how to reach the database as the one who may change its schema."""
    if settings.database_url:
        yield settings.database_url.get_secret_value()
        return
    with embedded(settings.data_dir, "command") as cluster:
        yield cluster.url(OWNER)


def migrated(settings: Settings) -> list[Migration]:
    """Bring the schema up to date and return what was applied."""
    if settings.database_url:
        return migrate(settings.database_url.get_secret_value())
    with embedded(settings.data_dir, "command") as cluster:
        return prepare(cluster)


def with_database(work: Callable[[Parts], Awaitable[Result]]) -> Result:
    """Do some work on the database and return its result; an embedded one is started and migrated for it."""
    settings = Settings.from_environment(os.environ)
    if settings.database_url:
        return asyncio.run(_do(work, settings, settings.database_url.get_secret_value()))
    with embedded(settings.data_dir, "command") as cluster:
        prepare(cluster)
        return asyncio.run(_do(work, settings, cluster.url()))


async def _do(work: Callable[[Parts], Awaitable[Result]], settings: Settings, url: str) -> Result:
    async with Database(url, connections=2) as database:
        return await work(Parts(database, system_clock, settings))
