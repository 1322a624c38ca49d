"""One client, driven without a terminal."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

# Seconds after which a client counts as stuck.
_MOST_SECONDS = 150


@dataclass(frozen=True, slots=True)
class Commands:
    """The commands of a client: before a prompt that begins a session, before one that resumes the latest, and the one
    that compacts the latest session, if there is one without a terminal.
    """

    start: tuple[str, ...]
    resume: tuple[str, ...]
    compact: tuple[str, ...] = ()


_CLAUDE = ("claude", "--model", "claude-sonnet-5", "--allowedTools", "mcp__esker", "Bash")
COMMANDS = {
    "claude-code": Commands(
        (*_CLAUDE, "-p"),
        (*_CLAUDE, "--continue", "-p"),
        (*_CLAUDE, "--continue", "-p", "/compact"),
    ),
    "codex": Commands(
        ("codex", "exec", "--dangerously-bypass-hook-trust"),
        ("codex", "exec", "--dangerously-bypass-hook-trust", "resume", "--last"),
    ),
    "gemini-cli": Commands(("gemini", "--yolo", "-p"), ("gemini", "--yolo", "--resume", "latest", "-p")),
    "opencode": Commands(("opencode", "run"), ("opencode", "run", "--continue")),
    "pi": Commands(("pi", "-p"), ("pi", "--continue", "-p")),
    "copilot": Commands(
        ("copilot", "--allow-all-tools", "-p"),
        ("copilot", "--allow-all-tools", "--continue", "-p"),
        ("copilot", "--allow-all-tools", "--continue", "-p", "/compact"),
    ),
}


@dataclass(frozen=True, slots=True)
class Run:
    """The output of a client, its exit code (None: it was stuck and killed), and its seconds."""

    output: str
    code: int | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Agent:
    """A client in a home and a repository of its own; `prefix` is the command that starts it."""

    name: str
    home: Path
    work: Path
    environ: Mapping[str, str]
    prefix: tuple[str, ...] = ()

    def start(self, prompt: str) -> Run:
        """Begin a session."""
        return self._run([*COMMANDS[self.name].start, prompt])

    def resume(self, prompt: str) -> Run:
        """Resume the latest session."""
        return self._run([*COMMANDS[self.name].resume, prompt])

    def compact(self) -> Run:
        """Compact the latest session."""
        return self._run(COMMANDS[self.name].compact)

    def interrupt(self, prompt: str, when: threading.Event) -> Run:
        """Resume the latest session, and press Ctrl-C when something has happened."""
        return self._run([*COMMANDS[self.name].resume, prompt], interrupt=when)

    def _run(self, command: Sequence[str], interrupt: threading.Event | None = None) -> Run:
        began = time.monotonic()
        with subprocess.Popen(
            [*self.prefix, *command],
            cwd=self.work,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                if interrupt and interrupt.wait(_MOST_SECONDS):
                    os.killpg(process.pid, signal.SIGINT)
                output, _ = process.communicate(timeout=_MOST_SECONDS)
                return Run(output, process.returncode, time.monotonic() - began)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, _ = process.communicate()
                return Run(output, None, time.monotonic() - began)
            except BaseException:
                # Ctrl-C does not reach a client with a session of its own.
                os.killpg(process.pid, signal.SIGKILL)
                raise

    def end(self) -> list[int]:
        """End every process that the client left behind, such as Codex's app-server; return their ids."""
        left = [process for process in psutil.process_iter() if _is_at_home(process, self.home)]
        for process in left:
            process.terminate()
        _, alive = psutil.wait_procs(left, timeout=10)
        for process in alive:
            process.kill()
        return [process.pid for process in left]


def _is_at_home(process: psutil.Process, home: Path) -> bool:
    try:
        return process.environ().get("HOME") == str(home)
    except psutil.Error:
        return False
