"""Reading the SQLite database of another program, which may be writing it, without creating files beside it.

A reader of a database in WAL mode creates missing `-wal` and `-shm` files, even if it opens read-only. So a database
without a `-wal`, which no program has open, is read as immutable, with a check afterwards that it did not change; one
with only a `-wal`, left by a killed writer, is read from a copy.
"""

import shutil
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from esker.server.agents.regular_file import opened_plain

_SECONDS = 5.0
_MAGIC = b"SQLite format 3\0"


@contextmanager
def reading(path: Path) -> Generator[sqlite3.Connection]:
    """Yield a connection that sees the database at one moment; rows have names, text that is not UTF-8 is repaired.

    Raises OSError for a file that is not a database or changed meanwhile, sqlite3.Error for a damaged one.
    """
    with opened_plain(path) as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise OSError(0, "it is not a database")
    wal, shm = beside(path, "-wal"), beside(path, "-shm")
    if wal.exists() and not shm.exists():
        with TemporaryDirectory(prefix="esker-") as folder:
            copies = [Path(shutil.copy(file, folder)) for file in (path, wal)]
            with _connected(copies[0], "rwc") as database:
                yield database
        return
    live = wal.exists()
    before = path.stat()
    with _connected(path, "ro" if live else "ro&immutable=1") as database:
        yield database
    after = path.stat()
    if not live and (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size):
        raise OSError(0, "it changed while it was being read; try again")


def beside(path: Path, suffix: str) -> Path:
    """Return the file with this suffix that SQLite keeps beside a database."""
    return path.with_name(path.name + suffix)


@contextmanager
def _connected(path: Path, mode: str) -> Generator[sqlite3.Connection]:
    uri = f"file:{quote(str(path.absolute()))}?mode={mode}"
    with closing(sqlite3.connect(uri, uri=True, timeout=_SECONDS, isolation_level=None)) as database:
        database.row_factory = sqlite3.Row
        database.text_factory = _decoded
        database.execute("BEGIN")  # one snapshot for all queries
        yield database


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
