"""`esker hook`: handles an event of an agent CLI, within the client's timeout and without ever failing.

At the start of a session it adds the pack to the model's context, at a prompt that refers to earlier work the memories
about that, and when a turn or a session ends or is compacted it sends the new messages of the transcript. Sending
continues in a process of its own if it takes longer than the client waits. Errors only go into a log.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FrameType

from esker.server.agents.api import Api
from esker.server.agents.hook_input import STEPS, HookEvent, HookStep, hook_event, read_object
from esker.server.agents.hook_output import answer, no_answer, pack_context, recalled_context
from esker.server.agents.private_folder import make_private
from esker.server.agents.project import is_excluded, project_of
from esker.server.agents.references import refers_to_earlier_work
from esker.server.agents.request_bodies import event_body, length_of, open_body
from esker.server.core.clock import system_clock
from esker.server.core.config.client_settings import ClientSettings, state_dir
from esker.server.core.errors import EskerError

# Environment variable of everything that a hook starts, so that no hook triggers another.
_INSIDE = "IN_ESKER_HOOK"
# Seconds that the client waits at most, and that sending may continue after that.
_PATIENCE: Mapping[HookStep, float] = {"start": 4.0, "prompt": 3.0, "turn_end": 1.0, "compact": 1.0, "end": 0.8}
_SENDING_SECONDS = 120.0
_ANSWER_SECONDS = 2.0
_LONGEST_QUERY = 4_000
_RECALLED = {"limit": 5, "max_tokens": 1_000}
_LOG = "hooks.log"
_LOG_BYTES = 256 * 1024


class _TimeIsUp(BaseException):
    """The client's waiting time is over."""


def run_hook(arguments: list[str], environ: Mapping[str, str]) -> int:
    """Handle one event; `arguments` are the client, the event's name, and optionally `--url` with an address.

    The address is used if ESKER_URL is not set. Always returns 0.
    """
    url, arguments = _address(arguments)
    client, name = (*arguments, "", "")[:2]
    output = no_answer(client)
    send: Callable[[], None] | None = None
    try:
        log = state_dir(environ) / _LOG
    except EskerError as error:
        sys.stderr.write(f"esker: {error} {error.hint}\n")
        _print(output)
        return 0
    with _logging(log, arguments):
        if not environ.get(_INSIDE):
            os.environ[_INSIDE] = "1"
            settings = ClientSettings.from_environment(environ, url)
            event = _read_event(client, name)
            project = project_of(event.cwd)
            # A session that has entered an excluded directory still sends its events, for its earlier messages.
            needs_context = event.step in ("start", "prompt")
            if event.session and not (needs_context and is_excluded(event.cwd, project, settings.exclude)):
                send = partial(_send, event, project, settings, environ)
                output = answer(event, _context(event, project, settings))
    with _logging(log, arguments):
        _print(output)
        if send:
            send()
    return 0


def _address(arguments: list[str]) -> tuple[str | None, list[str]]:
    """Return the address after `--url`, which may be anywhere, and the other arguments."""
    words = [word for each in arguments for word in (each.split("=", 1) if each.startswith("--url=") else [each])]
    if "--url" not in words:
        return None, words
    index = words.index("--url")
    return "".join(words[index + 1 : index + 2]) or None, words[:index] + words[index + 2 :]


@contextmanager
def _logging(log: Path, arguments: list[str]) -> Generator[None]:
    """Write every error to the log and suppress it: an agent must not fail because of its memory."""
    try:
        yield
    except _TimeIsUp:
        _write(log, f"{' '.join(arguments)}: timed out")
    except Exception as error:  # noqa: BLE001
        _write(log, f"{' '.join(arguments)}: {type(error).__name__}: {error}")


def _read_event(client: str, name: str) -> HookEvent:
    if name not in STEPS.get(client, {}):
        known = ", ".join(STEPS.get(client, STEPS))
        raise EskerError(f"Unknown {'event' if client in STEPS else 'client'}; known are {known}.")
    return hook_event(client, name, read_object(sys.stdin.fileno()), system_clock())


def _print(text: str) -> None:
    if text:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def _context(event: HookEvent, project: str | None, settings: ClientSettings) -> str | None:
    """Return the context for the model, if there is any."""
    match event.step:
        case "start":
            return _in_time("start", _log(settings), lambda: _pack(event, project, settings))
        case "prompt":
            return _in_time("prompt", _log(settings), lambda: _recall(event, project, settings))
        case _:
            return None


def _send(event: HookEvent, project: str | None, settings: ClientSettings, environ: Mapping[str, str]) -> None:
    """Send new messages in a process of its own; the client, which has its answer, may continue meanwhile."""

    def background(awaited: str | None, later: str | None = None) -> None:
        # Only the sending process imports the readers of transcripts, not the one that the client waits for.
        def work(method: str) -> None:
            module = import_module("esker.server.agents.capture")
            getattr(module.Capture(settings, event, project, environ), method)()

        steps = [partial(work, method) if method else None for method in (awaited, later)]
        _in_background(event, _log(settings), *steps)

    match event.step:
        case "start":
            background(None, "catch_up")
        case "prompt" if event.transcript is None:
            # A prompt that is kept before its hook ends cannot be overtaken by the answer.
            background("keep_prompt", "catch_up")
        case "prompt":
            pass
        case _:
            background("transcript")


def _pack(event: HookEvent, project: str | None, settings: ClientSettings) -> str | None:
    """Return the session's pack for this client; a new one after a compaction, which has dropped the old one."""
    api = Api.to(settings, timeout=_ANSWER_SECONDS)
    session = api.post("/v1/sessions", open_body(event.client, event.session, event.cwd, project))["id"]
    if event.source == "compact":
        api.post(f"/v1/sessions/{session}/events", event_body("evicted", length_of(event)))
    return pack_context(event.client, api.get(f"/v1/sessions/{session}/pack")["text"])


def _recall(event: HookEvent, project: str | None, settings: ClientSettings) -> str | None:
    prompt = event.prompt or ""
    enabled = settings.hook_recall == "always" or (
        settings.hook_recall == "explicit" and refers_to_earlier_work(prompt)
    )
    if not (enabled and event.by_user and prompt):
        return None
    api = Api.to(settings, timeout=_ANSWER_SECONDS)
    session = api.post("/v1/sessions", open_body(event.client, event.session, event.cwd, project))
    question = {"query": prompt[-_LONGEST_QUERY:], "timezone": session["timezone"], **_RECALLED}
    question |= {"project": session["project"]} if session["project"] else {}
    found = api.ask_for_text("/v1/recall", question)
    return recalled_context(event.client, found) if "\n* " in found else None


def _in_time(step: HookStep, log: Path, work: Callable[[], str | None]) -> str | None:
    """Return the result of `work`, or None if it takes longer than the client waits or the server fails."""
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


def _in_background(
    event: HookEvent, log: Path, awaited: Callable[[], None] | None, later: Callable[[], None] | None
) -> None:
    """Do work in a process of its own, which may outlive the client, and wait for the first part, but not for long.

    The process has a session of its own, so that it survives when the client's processes are stopped, and none of the
    client's pipes, since some clients wait until these are closed.
    """
    sys.stdout.flush()
    finished, writing = os.pipe()
    if os.fork() == 0:
        _run_in_background(event, log, awaited, writing, later)
    os.close(writing)
    if awaited:
        select.select([finished], [], [], _PATIENCE[event.step])
    os.close(finished)


def _run_in_background(
    event: HookEvent,
    log: Path,
    awaited: Callable[[], None] | None,
    writing: int,
    later: Callable[[], None] | None,
) -> None:
    """Do both parts and close `writing` between them, then end this process."""
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        signal.signal(signal.SIGALRM, _ring)
        signal.setitimer(signal.ITIMER_REAL, _SENDING_SECONDS)
        if awaited:
            awaited()
        os.close(writing)
        if later:
            later()
    except BaseException as error:  # noqa: BLE001 - a forked process has no caller to catch it
        _write(log, f"{event.client} {event.name}: {type(error).__name__}: {error}")
    finally:
        os._exit(0)


def _log(settings: ClientSettings) -> Path:
    return settings.state_dir / _LOG


def _write(log: Path, line: str) -> None:
    """Add a line to the owner-only log; a log that has grown long is rotated."""
    try:
        make_private(log.parent)
        if log.is_file() and log.stat().st_size > _LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
        with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a") as file:
            file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {line}\n")
    except OSError:
        return
