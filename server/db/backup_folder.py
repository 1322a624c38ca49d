"""A folder of backups that are named by their time: when the next one is due, and which are kept."""

import fcntl
import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from esker.server.core.errors import Misconfigured

_FORMAT = "esker-%Y%m%dT%H%M%SZ.dump"
_NAME = re.compile(r"esker-\d{8}T\d{6}Z\.dump")
_PART = re.compile(rf"\.{_NAME.pattern}\.part")
_LOCK = ".esker.lock"


@dataclass(frozen=True, slots=True)
class BackupFolder:
    """The folder, the time between two backups, and how many are kept."""

    path: Path
    pause: timedelta
    keep: int

    def file(self, now: datetime) -> Path:
        """Return the path of a backup that is made now."""
        return self.path / name_of(now)

    def due_at(self) -> datetime | None:
        """Return when the next backup is due; None if there is none yet."""
        made = self._made()
        return made_at(made[-1]) + self.pause if made else None

    def delete_old(self) -> list[Path]:
        """Delete the oldest backups beyond those that are kept, and what killed ones left; return the backups."""
        old = self._made()[: -self.keep]
        for path in (*old, *(rest for rest in self.path.iterdir() if _PART.fullmatch(rest.name))):
            path.unlink(missing_ok=True)
        return old

    @contextmanager
    def held(self) -> Generator[bool]:
        """Make the folder if it is missing, and hold it during the block; yields False if another server holds it.

        Raises Misconfigured when the folder cannot be used.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise Misconfigured(
                f"The folder for backups {self.path} cannot be used: {error.strerror}.", hint="Set ESKER_BACKUP_DIR."
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
        finally:
            os.close(descriptor)

    def _made(self) -> list[Path]:
        """Return the backups, oldest first."""
        there = self.path.iterdir() if self.path.is_dir() else ()
        return sorted(path for path in there if _NAME.fullmatch(path.name))


def name_of(now: datetime) -> str:
    """Return the name of a backup that is made at a time."""
    return now.astimezone(UTC).strftime(_FORMAT)


def made_at(path: Path) -> datetime:
    """Return when a backup of that name was made."""
    return datetime.strptime(path.name, _FORMAT).replace(tzinfo=UTC)
