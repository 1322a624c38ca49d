"""A real pgbouncer in transaction mode in front of a test's Postgres."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from esker.server.db.programs import hand_over, start
from tests.support.made import shared_folder
from tests.support.waiting import eventually_here

_PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
_PORT = 6432
SERVERS = 2
"""Its connections to Postgres: fewer than clients have, so that several use each in turn."""

_CONFIGURATION = """
[databases]
{database} = host={sockets}
[pgbouncer]
unix_socket_dir = {folder}
listen_port = {port}
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = {servers}
logfile = {folder}/log
"""


@contextmanager
def pgbouncer(database_url: str) -> Generator[str]:
    """Run pgbouncer in front of `database_url` while the block runs; yield the address for clients.

    Skips the test where pgbouncer is not installed.
    """
    if _PROGRAM is None:
        pytest.skip("pgbouncer is not installed")
    parts = urlsplit(database_url)
    [sockets] = parse_qs(parts.query)["host"]
    database = parts.path.removeprefix("/")
    with tempfile.TemporaryDirectory(prefix="bouncer-", dir=shared_folder()) as name:
        folder = Path(name)
        (folder / "users").write_text(f'"{parts.username}" ""\n')
        (folder / "ini").write_text(
            _CONFIGURATION.format(database=database, sockets=sockets, folder=folder, port=_PORT, servers=SERVERS)
        )
        # It refuses to run as root, and only Postgres's user may enter the directory of the socket.
        hand_over(folder)
        process = start([_PROGRAM, str(folder / "ini")], subprocess.DEVNULL)
        try:
            socket = folder / f".s.PGSQL.{_PORT}"
            eventually_here(lambda: socket.exists() or process.poll() is not None)
            assert process.poll() is None, (folder / "log").read_text()
            yield f"postgresql://{parts.username}@/{database}?host={quote(name, safe='')}&port={_PORT}"
        finally:
            process.terminate()
            process.wait()
