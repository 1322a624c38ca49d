"""Commands that are forked from a process that has imported what they need; imports are most of what a command costs.

Each is a process with its own environment, directory and streams. The command line itself is imported anew, because it
reads the environment on import, such as the width of the terminal.
"""

import array
import atexit
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from tests.support.made import end_of_run, once, shared_folder
from tests.support.waiting import PATIENCE

_ROOT = Path(__file__).parents[2]
_PROGRAM = Path(__file__).with_name("forked_command.py")
_COMMAND_LINE = "esker.server.cli"
# The first argument of a command that runs a module's `main`, whose name follows, or a file.
_MODULE, FILE = "-m", "-f"
# Modules that are imported only while a command runs.
_LATER = (
    "typer._adapters",
    "typer.rich_utils",
    "rich.progress",
    "pydantic.type_adapter",
    "encodings.idna",
    "esker.migrations",
    "esker.server.agents.capture",
    "importlib.resources.readers",
    "rich._emoji_codes",
    "typer._click._textwrap",
    "typer._click.decorators",
)
# Modules that a verb imports only when it runs: the library of a language model, and the server itself.
_LATER_OF = {
    "doctor": ("anthropic",),
    FILE: ("anthropic", "anyio._backends._asyncio"),
    "serve": ("anthropic", "anyio._backends._asyncio", "esker.server.cli.server_run"),
}
_LENGTH = 8
_HOOK_SECONDS = 840.0


class Forked:
    """A command that runs; `streams` are its standard input, output and error.

    Variables that only a starting interpreter reads, such as PYTHONIOENCODING, have no effect.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        directory: Path,
        environment: Mapping[str, str],
        streams: Sequence[int],
        user: int | None = None,
    ) -> None:
        self.arguments = [*arguments]
        self.returncode: int | None = None
        asked = {"arguments": self.arguments, "directory": str(directory), "environment": dict(environment)}
        asked["user"] = user
        data = json.dumps(asked).encode()
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._connection.connect(parent_of_commands())
        socket.send_fds(self._connection, [len(data).to_bytes(_LENGTH)], streams)
        self._connection.sendall(data)
        self._answers = self._connection.makefile()
        self.pid = int(self._answers.readline())

    def wait(self, timeout: float = PATIENCE) -> int:
        """Wait for its end and return its exit code. Raises TimeoutExpired if that takes too long."""
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.arguments, timeout)
            self.returncode = int(self._answers.readline())
            self._answers.close()
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it still runs."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it, if it still runs."""
        self.send_signal(signal.SIGKILL)


def run_forked(
    arguments: Sequence[str],
    directory: Path,
    environment: Mapping[str, str],
    timeout: float,
    standard_input: bytes = b"",
    user: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, as another user on request, and return its output. Raises TimeoutExpired."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(standard_input)
        given.seek(0)
        command = Forked(arguments, directory, environment, [each.fileno() for each in (given, out, err)], user)
        try:
            code = command.wait(timeout)
        except BaseException:
            command.kill()
            command.wait(timeout)
            raise
        printed: list[str] = []
        for file in (out, err):
            file.seek(0)
            printed.append(file.read().decode())
    return subprocess.CompletedProcess([*arguments], code, *printed)


def forked_command(*arguments: str, directory: Path = _ROOT) -> list[str]:
    """Return the words that start a command for a client which starts its servers itself."""
    return [sys.executable, "-S", "-E", str(_PROGRAM), parent_of_commands(), str(directory), *arguments]


def fork_children(parent: Callable[[], str]) -> None:
    """Let a server in this process fork its children for long texts; `parent` returns the address of their parent."""
    processes = importlib.import_module("esker.server.providers.text_processes")

    def command(module: str) -> list[str]:
        return [sys.executable, "-S", "-E", str(_PROGRAM), parent(), str(_ROOT), _MODULE, module]

    vars(processes).update(child_command=command)


@cache
def parent_of_commands() -> str:
    """Start the process that the commands of a run are forked from, unless it runs, and return its address."""
    path = str(shared_folder() / "forks")
    with once("forks") as missing:
        if missing:
            _start(path)
    return path


def _start(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener, end_of_run() as end:
        listener.bind(path)
        listener.listen(16)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.forks", str(listener.fileno())],
            cwd=_ROOT,
            stdin=end,
            stdout=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
    # It outlives this process, which is no fault.
    process.returncode = 0


# The process that is forked ----------------------------------------------------------------------------------------


def _serve(listener: socket.socket) -> None:
    """Fork a command for each connection and send its exit code, until standard input closes; return in the command."""
    gone, changed = socket.socketpair()
    for end in (gone, changed):
        end.setblocking(False)
    signal.set_wakeup_fd(changed.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, socket.socket] = {}
    listener_address = listener.getsockname()
    while True:
        ready, _, _ = select.select([listener, gone, sys.stdin], [], [])
        if sys.stdin in ready:
            for pid in running:
                os.kill(pid, signal.SIGTERM)
            sys.exit()
        if gone in ready:
            gone.recv(4096)
            _tell(running)
        if listener in ready:
            connection, _ = listener.accept()
            asked, streams = _read(connection)
            _import(asked["arguments"])
            gc.freeze()
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for end in (listener, gone, changed, connection, *running.values()):
                    end.close()
                _become(asked | {"parent": listener_address}, streams)
                return
            for stream in streams:
                os.close(stream)
            running[pid] = connection
            connection.sendall(b"%d\n" % pid)


def _tell(running: dict[int, socket.socket]) -> None:
    for pid in list(running):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with running.pop(pid) as connection, suppress(OSError):
                connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def _read(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Return the requested command and its streams."""
    room = socket.CMSG_SPACE(3 * array.array("i").itemsize)
    length, messages, _, _ = connection.recvmsg(_LENGTH, room)
    streams = array.array("i", b"".join(data for _, _, data in messages))
    with connection.makefile("rb") as file:
        return json.loads(file.read(int.from_bytes(length))), list(streams)


def _import(arguments: Sequence[str]) -> None:
    """Import what the verb of a command needs, if it is one."""
    verbs = importlib.import_module(f"{_COMMAND_LINE}.verbs").VERBS
    of_verb = [f"{_COMMAND_LINE}.{verbs[verb][0]}" for verb in arguments[:1] if verb in verbs]
    later = [name for verb in arguments[:1] for name in _LATER_OF.get(verb, ())]
    for name in (*_LATER, *of_verb, *later):
        with suppress(Exception):  # the command itself will report it
            importlib.import_module(name)
    if arguments[:1] == [_MODULE]:
        observe_once()


@cache
def observe_once() -> None:
    """Compile the patterns of the extractive observer before forking, which takes 0.7 seconds of each process."""
    said = (
        ("user", "We use pnpm, never npm."),
        ("assistant", "I fixed `a.py`. The cause was a wrong id."),
        ("user", "Yes."),
    )
    observe = importlib.import_module("esker.server.providers.extractive.observer").observe
    observe(importlib.import_module("tests.support.records").conversation(*said))


def _become(asked: dict[str, Any], streams: Sequence[int]) -> None:
    """Set up this process as a command that has just been started."""
    os.environ.clear()
    os.environ.update(asked["environment"])
    time.tzset()
    # A run that outlives its terminal (`nohup make test`) ignores them, and so would its commands.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(asked["directory"])
    if (user := asked.get("user")) is not None:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    # They stay open until the process ends.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.argv = ["esker", *asked["arguments"]]
    if asked["arguments"][:1] == ["hook"]:
        _give_time()
    if asked["arguments"][:1] == ["serve"]:
        fork_children(lambda: asked["parent"])
    for name in [name for name in sys.modules if name == _COMMAND_LINE or name.startswith(f"{_COMMAND_LINE}.")]:
        del sys.modules[name]


def _give_time() -> None:
    """Let a hook wait for the server's answer as long as a test does: on a busy machine its own limits are short."""
    hooks = importlib.import_module("esker.server.agents.hooks")
    patience = {**getattr(hooks, "_PATIENCE"), "start": _HOOK_SECONDS, "prompt": _HOOK_SECONDS}  # noqa: B009
    vars(hooks).update(_ANSWER_SECONDS=_HOOK_SECONDS, _PATIENCE=patience)


def _run() -> NoReturn:
    """Run the command and end; tearing all modules down one by one would cost more than the command."""
    try:
        if sys.argv[1:2] == [_MODULE]:
            importlib.import_module(sys.argv[2]).main()
        elif sys.argv[1:2] == [FILE]:
            runpy.run_path(sys.argv[2], run_name="__main__")
        else:
            importlib.import_module(f"{_COMMAND_LINE}.entry").run()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException as error:  # noqa: BLE001 - as an interpreter would
        sys.excepthook(type(error), error, error.__traceback__)
        code = 1
    # In the order of an interpreter: threads first, then exit handlers.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as _listener:
        _serve(_listener)
    _run()
