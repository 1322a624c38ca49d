"""The regular backups of a server."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from esker.server.core.clock import Clock, system_clock
from esker.server.core.config.settings import Settings
from esker.server.core.errors import EskerError
from esker.server.db import dumps
from esker.server.db.archive import Archive, base_time
from esker.server.db.backup_folder import BackupFolder

log = logging.getLogger(__name__)

_RETRY = timedelta(hours=1)
_LOOK_SECONDS = 60.0


def folder_of(settings: Settings) -> BackupFolder | None:
    """Return the folder of the settings, if one is set."""
    if settings.backup_dir is None:
        return None
    return BackupFolder(settings.backup_dir, timedelta(hours=settings.backup_hours), settings.backup_keep)


async def back_up(folder: BackupFolder, url: str) -> None:
    """Write a backup whenever one is due, until cancelled."""
    await _whenever(lambda now: is_due(folder, now), lambda: back_up_now(folder, url))


async def archive_bases(archive: Archive, settings: Settings, url: str) -> None:
    """Make a base backup for the archive whenever one is due, until cancelled."""
    pause = timedelta(hours=settings.backup_hours)

    def is_missing(now: datetime) -> bool:
        made = archive.made()
        return not made or now >= base_time(made[-1]) + pause

    await _whenever(is_missing, lambda: make_base(archive, url, settings.backup_keep))


def make_base(archive: Archive, url: str, keep: int) -> None:
    """Make a base backup, and delete what the archive need not keep."""
    made = archive.make_base(url, system_clock)
    archive.delete_old(keep)
    log.info("made the base backup %s", made)


async def _whenever(is_due: Callable[[datetime], bool], work: Callable[[], object]) -> None:
    """Do some work in a thread whenever it is due; after a failure it is tried again an hour later."""
    again: datetime | None = None
    while True:
        now = system_clock()
        if (again is None or now >= again) and is_due(now):
            try:
                await asyncio.to_thread(work)
                again = None
            except (EskerError, OSError) as error:
                again = now + _RETRY
                log.error("the backup failed: %s %s", error, getattr(error, "hint", "") or "")
        await asyncio.sleep(_LOOK_SECONDS)


def is_due(folder: BackupFolder, now: datetime) -> bool:
    """Whether a backup is due, by the time of the last one in the folder."""
    due = folder.due_at()
    return due is None or now >= due


def back_up_now(folder: BackupFolder, url: str, clock: Clock = system_clock) -> bool:
    """Write a backup and delete old ones; return False if another server has done it, or does it now."""
    with folder.held() as mine:
        if not mine or not is_due(folder, clock()):
            return False
        made = dumps.dump(url, folder.file(clock()), lambda done, total: None)
        old = folder.delete_old()
    log.info("wrote the backup %s (%.1f MiB), and deleted %d older ones", made.path, made.bytes / 1024**2, len(old))
    return True
