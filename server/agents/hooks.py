"""What `esker hook` does at an event of an agent CLI, within the client's patience, and never in its way.

At the start of a session it puts the pack into the model's context, at a prompt that refers to earlier work what memory
knows of that, and whenever a turn, a compaction or a session ends it sends what is new in the transcript. Sending goes
on in a process of its own if it takes longer than a client waits. Nothing here fails: an error goes into a log.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

from esker.server.agents.api import Api
from esker.server.agents.hook_input import STEPS, HookEvent, HookStep, read_object, told
from esker.server.agents.hook_output import answer, no_answer, pack_context, recalled_context
from esker.server.agents.project import is_excluded, project_of
from esker.server.agents.references import refers_to_earlier_work
from esker.server.agents.request_bodies import event_body, length_of, open_body
from esker.server.core.config.client_settings import ClientSettings, state_dir
from esker.server.core.errors import EskerError

# Set for whatever a hook starts, so that no hook sets off another.
_INSIDE = "IN_ESKER_HOOK"
# How long the client is kept waiting, in seconds, and how long sending may go on after that.
_PATIENCE: Mapping[HookStep, float] = {"start": 4.0, "prompt": 3.0, "turn_end": 1.0, "compact": 1.0, "end": 0.8}
_SENDING_SECONDS = 120.0
_ANSWER_SECONDS = 2.0
_LONGEST_QUERY = 4_000
_RECALLED = {"limit": 5, "max_tokens": 1_000}
_LOG = "hooks.log"
_LOG_BYTES = 256 * 1024


class _TimeIsUp(BaseException):
    """The client waits no longer."""


def run_hook(arguments: list[str], environ: Mapping[str, str]) -> int:
    """Handle one event; `arguments` are the client and its name of the event, and `--url` with an address.

    The address counts where ESKER_URL is not set. Always returns 0.
    """
    url, arguments = _address(arguments)
    client, event = (*arguments, "", "")[:2]
    said = no_answer(client)
    send: Callable[[], None] | None = None
    log = state_dir(environ) / _LOG
    with _logging(log, arguments):
        if not environ.get(_INSIDE):
            os.environ[_INSIDE] = "1"
            settings = ClientSettings.from_environment(environ, url)
            asked = _asked(client, event)
            project = project_of(asked.cwd)
            # Of a session that has come to an excluded place what was said before is sent all the same.
            told_here = asked.step in ("start", "prompt")
            if asked.session and not (told_here and is_excluded(asked.cwd, project, settings.exclude)):
                send = partial(_send, asked, project, settings, environ)
                said = answer(asked, _context(asked, project, settings))
    with _logging(log, arguments):
        _print(said)
        if send:
            send()
    return 0


def _address(arguments: list[str]) -> tuple[str | None, list[str]]:
    """Return the address that `--url` names, wherever it stands, and the other arguments."""
    words = [word for each in arguments for word in (each.split("=", 1) if each.startswith("--url=") else [each])]
    if "--url" not in words:
        return None, words
    place = words.index("--url")
    return "".join(words[place + 1 : place + 2]) or None, words[:place] + words[place + 2 :]


@contextmanager
def _logging(log: Path, arguments: list[str]) -> Generator[None]:
    """Have the log told of what goes wrong, and nobody else: an agent must not fail for its memory."""
    try:
        yield
    except _TimeIsUp:
        _write(log, f"{' '.join(arguments)}: the time was up")
    except Exception as error:  # noqa: BLE001
        _write(log, f"{' '.join(arguments)}: {type(error).__name__}: {error}")


def _asked(client: str, event: str) -> HookEvent:
    if event not in STEPS.get(client, {}):
        known = ", ".join(STEPS.get(client, STEPS))
        raise EskerError(f"There is no such {'event' if client in STEPS else 'client'}; known are {known}.")
    return told(client, event, read_object(sys.stdin.fileno()))


def _print(text: str) -> None:
    if text:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def _context(asked: HookEvent, project: str | None, settings: ClientSettings) -> str | None:
    """Return what the model is to have, if anything."""
    match asked.step:
        case "start":
            return _in_time("start", _log(settings), lambda: _pack(asked, project, settings))
        case "prompt":
            return _in_time("prompt", _log(settings), lambda: _recall(asked, project, settings))
        case _:
            return None


def _send(asked: HookEvent, project: str | None, settings: ClientSettings, environ: Mapping[str, str]) -> None:
    """Send what is new, in a process of its own; a client that has its answer may go on meanwhile."""

    def work(what: str) -> Callable[[], None]:
        # Readers of transcripts are imported by the process that sends, and not by the one that is waited for.
        module = "esker.server.agents.capture"
        return lambda: getattr(import_module(module).Capture(settings, asked, project, environ), what)()

    match asked.step:
        case "start":
            _apart(asked, 0.0, _log(settings), work("catch_up"))
        case "prompt" if asked.transcript is None:
            _apart(asked, 0.0, _log(settings), work("prompt"))
        case "prompt":
            pass
        case step:
            _apart(asked, _PATIENCE[step], _log(settings), work("transcript"))


def _pack(asked: HookEvent, project: str | None, settings: ClientSettings) -> str | None:
    """Return the session's pack for this client; a new one after a compaction, which has dropped the old."""
    api = Api.to(settings, timeout=_ANSWER_SECONDS)
    session = api.post("/v1/sessions", open_body(asked.client, asked.session, asked.cwd, project))["id"]
    if asked.source == "compact":
        api.post(f"/v1/sessions/{session}/events", event_body("evicted", length_of(asked)))
    return pack_context(asked.client, api.get(f"/v1/sessions/{session}/pack")["text"])


def _recall(asked: HookEvent, project: str | None, settings: ClientSettings) -> str | None:
    prompt = asked.prompt or ""
    wanted = settings.hook_recall == "always" or (settings.hook_recall == "explicit" and refers_to_earlier_work(prompt))
    if not (wanted and asked.by_user and prompt):
        return None
    api = Api.to(settings, timeout=_ANSWER_SECONDS)
    session = api.post("/v1/sessions", open_body(asked.client, asked.session, asked.cwd, project))
    question = {"query": prompt[-_LONGEST_QUERY:], "timezone": session["timezone"], **_RECALLED}
    question |= {"project": session["project"]} if session["project"] else {}
    found = api.ask_for_text("/v1/recall", question)
    return recalled_context(asked.client, found) if "\n* " in found else None


def _in_time(step: HookStep, log: Path, work: Callable[[], str | None]) -> str | None:
    """Return what work gives, or None where it takes longer than the client waits or the server does not answer."""
    signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE[step])
    try:
        return work()
    except EskerError as error:
        _write(log, f"{step}: {error}")
    except _TimeIsUp:
        _write(log, f"{step}: no answer within {_PATIENCE[step]:.0f} s")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return None


def _ring(number: int, frame: FrameType | None) -> None:
    raise _TimeIsUp


def _apart(asked: HookEvent, patience: float, log: Path, work: Callable[[], Any]) -> None:
    """Do work in a process of its own, and wait for it so many seconds: the client may end, and this goes on.

    It is in a session of its own, so that who stops the client's processes does not stop it, and it holds none of the
    client's pipes, which would keep a client waiting that waits for their end.
    """
    sys.stdout.flush()
    if (child := os.fork()) == 0:
        _work_apart(asked, log, work)
    deadline = time.monotonic() + patience
    pause = 0.002
    while time.monotonic() < deadline:
        if os.waitpid(child, os.WNOHANG)[0]:
            return
        time.sleep(pause)
        pause = min(0.05, pause * 2)


def _work_apart(asked: HookEvent, log: Path, work: Callable[[], Any]) -> None:
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        signal.signal(signal.SIGALRM, _ring)
        signal.setitimer(signal.ITIMER_REAL, _SENDING_SECONDS)
        work()
    except BaseException as error:  # noqa: BLE001 - nobody is there to catch it
        _write(log, f"{asked.client} {asked.event}: {type(error).__name__}: {error}")
    finally:
        os._exit(0)


def _log(settings: ClientSettings) -> Path:
    return settings.state_dir / _LOG


def _write(log: Path, line: str) -> None:
    """Add a line to the log, which only its owner can read; one that has grown long begins anew."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if log.is_file() and log.stat().st_size > _LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
        with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a") as file:
            file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {line}\n")
    except OSError:
        return
