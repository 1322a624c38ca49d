"""The archive of an embedded Postgres: base backups and the write-ahead log since. Any moment can be restored from it.

It has a folder for each cluster, named by its system identifier, since two clusters use the same names of files. A
server that starts with an archive notes it in the data directory, so that commands that start Postgres go on archiving.
"""

import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from esker.server.core.clock import Clock
from esker.server.core.errors import InvalidInput, Misconfigured, NotFound, Unavailable
from esker.server.db import postmaster
from esker.server.db.migrate import connected
from esker.server.db.programs import BINARIES, execute, hand_over, let_postgres_in
from esker.server.db.statements import Statements

_SQL = Statements(Path(__file__).parent / "sql/archive.sql")
_NOTE = "esker.archive"
_FORMAT = "%Y%m%dT%H%M%SZ"
_BASE = re.compile(r"\d{8}T\d{6}Z")
_SEGMENT = re.compile(r"[0-9A-F]{24}")
_FIRST = re.compile(r"START WAL LOCATION: \S+ \(file ([0-9A-F]{24})\)")
_SYSTEM = re.compile(r"Database system identifier:\s+(\d+)")
# Seconds after which an incomplete file of the log is archived: the most that is lost with the machine.
_TIMEOUT_SECONDS = 60
_FLUSH_SECONDS = 60.0
_RECOVERY_SECONDS = 24 * 3_600.0
_NOT_REACHED = "recovery ended before configured recovery target was reached"


@dataclass(frozen=True, slots=True)
class Archive:
    """The archive of one cluster."""

    path: Path

    @property
    def wal(self) -> Path:
        """The folder of the write-ahead log."""
        return self.path / "wal"

    @property
    def bases(self) -> Path:
        """The folder of base backups, each a folder that is named by the time at which it was complete."""
        return self.path / "base"

    def settings(self) -> dict[str, str]:
        """Return the settings with which Postgres archives. Raises Misconfigured when the folder cannot be used."""
        try:
            for folder in (self.wal, self.bases):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise Misconfigured(
                f"The archive {self.path} cannot be used: {error.strerror}.", hint="Set ESKER_ARCHIVE_DIR."
            ) from error
        let_postgres_in(self.wal)
        folder = _in_command(self.wal)
        # Postgres archives a file again if it was killed before it noted that it had.
        command = (
            f"if test -f {folder}/%f; then cmp -s %p {folder}/%f;"
            f" else cp %p {folder}/.%f && sync {folder}/.%f && mv {folder}/.%f {folder}/%f; fi"
        )
        return {"archive_mode": "on", "archive_command": command, "archive_timeout": str(_TIMEOUT_SECONDS)}

    def made(self) -> list[Path]:
        """Return the base backups, oldest first."""
        there = self.bases.iterdir() if self.bases.is_dir() else ()
        return sorted(path for path in there if _BASE.fullmatch(path.name))

    def make_base(self, url: str, clock: Clock) -> Path:
        """Copy the running cluster as the owner of its database; requests go on. Raises Unavailable."""
        fresh = self.bases / ".part"
        shutil.rmtree(fresh, ignore_errors=True)
        command = [BINARIES / "pg_basebackup", "-D", fresh, "--checkpoint=fast", f"--dbname={url}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if "error: " in line]
            raise Unavailable(f"pg_basebackup failed: {(errors or ['no reason given'])[0]}")
        # The base backup is complete: any later time can be recovered from it.
        return fresh.rename(self.bases / clock().astimezone(UTC).strftime(_FORMAT))

    def delete_old(self, keep: int) -> None:
        """Delete the oldest base backups beyond those that are kept, and the log that only they need."""
        made = self.made()
        for path in made[:-keep]:
            shutil.rmtree(path)
        if kept := made[-keep:]:
            found = _FIRST.search((kept[0] / "backup_label").read_text(encoding="utf-8"))
            for file in self.wal.iterdir() if found else ():
                # Timelines are the first eight digits; there is one, since nothing is promoted here.
                if found and _SEGMENT.fullmatch(file.name[:24]) and file.name[:24] < found[1]:
                    file.unlink()


def base_time(path: Path) -> datetime:
    """Return when a base backup was complete."""
    return datetime.strptime(path.name, _FORMAT).replace(tzinfo=UTC)


def note(data_dir: Path, folder: Path | None) -> None:
    """Note the archive of a data directory, or that it has none from now on."""
    file = data_dir / _NOTE
    if folder is None:
        file.unlink(missing_ok=True)
    else:
        file.write_text(str(folder), encoding="utf-8", errors="surrogateescape")


def noted(data_dir: Path) -> Path | None:
    """Return the archive of a data directory."""
    with suppress(OSError):
        return Path((data_dir / _NOTE).read_text(encoding="utf-8", errors="surrogateescape"))
    return None


def of_cluster(folder: Path, directory: Path) -> Archive:
    """Return the archive of the cluster in a directory. Raises Unavailable when its identifier cannot be read."""
    found = _SYSTEM.search(execute("pg_controldata", directory).stdout)
    if found is None:
        raise Unavailable(f"The identifier of the cluster in {directory} cannot be read.")
    return Archive(folder / found[1])


def is_archiving(url: str) -> bool:
    """Return whether a running cluster archives."""
    with connected(url) as connection:
        return connection.execute(_SQL["mode"]).fetchone() == ("on",)


def flush(url: str) -> None:
    """Have a running cluster archive all that was written. Raises Unavailable when it does not."""
    deadline = time.monotonic() + _FLUSH_SECONDS
    with connected(url) as connection:
        row = connection.execute(_SQL["switch"]).fetchone()
        while row and connection.execute(_SQL["archived"], {"file": row[0]}).fetchone() != (True,):
            if time.monotonic() > deadline:
                raise Unavailable("Postgres does not archive its log.", hint="Its own log says why.")
            time.sleep(0.1)


def latest_base(folder: Path, at: datetime | None) -> tuple[Archive, Path]:
    """Return the last base backup that was complete at a time, or the last of all. Raises NotFound."""
    archives = [Archive(path) for path in _folders(folder) if path.name.isdigit()]
    made = [(base_time(base), archive, base) for archive in archives for base in archive.made()]
    if not made:
        raise NotFound(f"There is no base backup in {folder}.", hint="A server with ESKER_ARCHIVE_DIR makes them.")
    fitting = [one for one in made if at is None or one[0] <= at]
    if not fitting:
        first = min(moment for moment, _, _ in made)
        raise NotFound(f"The archive begins at {first.isoformat()}.", hint="Name a later time.")
    _, archive, base = max(fitting, key=lambda one: one[0])
    return archive, base


def _folders(folder: Path) -> Iterable[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_dir()]
    except OSError as error:
        raise NotFound(f"The archive {folder} cannot be read: {error.strerror}.") from error


@contextmanager
def recovered(folder: Path, at: datetime | None, directory: Path, sockets: Path) -> Generator[None]:
    """Run a copy of the cluster in `directory` as it was at a time, or at the end of the archive; removed at the end.

    Raises NotFound when there is no earlier base backup, and InvalidInput when the archive ends before that time.
    """
    archive, base = latest_base(folder, at)
    shutil.rmtree(directory, ignore_errors=True)
    try:
        shutil.copytree(base, directory)
        directory.chmod(0o700)
        (directory / "recovery.signal").touch()
        (directory / "log").unlink(missing_ok=True)
        hand_over(directory)
        let_postgres_in(archive.wal)
        # Without a hot standby it is ready when it is recovered, and not before.
        settings = {"archive_mode": "off", "hot_standby": "off"}
        settings["restore_command"] = f"cp {_in_command(archive.wal)}/%f %p"
        if at is not None:
            settings |= {"recovery_target_time": at.isoformat(), "recovery_target_action": "promote"}
        try:
            process = postmaster.start(directory, sockets, settings, seconds=_RECOVERY_SECONDS)
        except Unavailable as error:
            if at is None or _NOT_REACHED not in str(error):
                raise
            raise InvalidInput(
                f"The archive has nothing that was written after {at.isoformat()}, so the time may not be reached.",
                hint="`--at latest` restores its end.",
            ) from error
        try:
            yield
        finally:
            postmaster.stop(directory)
            process.wait()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _in_command(folder: Path) -> str:
    """Return a folder as a word of the shell in a setting, where a per cent sign is written twice."""
    return shlex.quote(str(folder)).replace("%", "%%")
