"""`esker hook`: handles an event of an agent CLI, within the client's timeout and without ever failing.

At the start of a session it adds the pack to the model's context, at a prompt that refers to earlier work the memories
about that, and when a turn or a session ends or is compacted it sends the new messages of the transcript. Sending
continues in a process of its own if it takes longer than the client waits. Errors only go into a log.
"""

import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module

from esker.server.agents.detached import in_background
from esker.server.agents.hook_context import HookContext, TimeIsUp
from esker.server.agents.hook_input import STEPS, HookEvent, HookStep, hook_event, read_object
from esker.server.agents.hook_log import HookLog
from esker.server.agents.hook_output import answer, no_answer
from esker.server.agents.hook_state import HookState
from esker.server.agents.project import is_excluded, project_of
from esker.server.core.clock import system_clock
from esker.server.core.config.client_settings import INSIDE_HOOK, ClientSettings, state_dir, variable
from esker.server.core.errors import EskerError

# Options of the installed command, by the variables that they set.
_OPTIONS = {"--url": variable("url"), "--state-dir": variable("state_dir")}
# The most seconds that a client waits for sending. Claude Code gives the end of a session 1.5 seconds.
_PATIENCE: Mapping[HookStep, float] = {"turn_end": 1.0, "compact": 1.0, "end": 0.8}


def run_hook(arguments: list[str], environ: Mapping[str, str]) -> int:
    """Handle one event; `arguments` are the client, the event's name, and the options of the installer.

    `--url` and `--state-dir` take precedence over ESKER_URL and ESKER_STATE_DIR. Always returns 0.
    """
    installed, arguments = _options(arguments)
    environ = {**environ, **installed}
    client, name = (*arguments, "", "")[:2]
    output = no_answer(client)
    send: Callable[[], None] | None = None
    try:
        log = HookLog(state_dir(environ))
    except EskerError as error:
        sys.stderr.write(f"esker: {error} {error.hint}\n")
        _print(output)
        return 0
    with _logging(log, arguments):
        if not environ.get(INSIDE_HOOK):
            os.environ[INSIDE_HOOK] = "1"
            settings = ClientSettings.from_environment(environ)
            event = _read_event(client, name)
            project = project_of(event.cwd)
            # A session that has entered an excluded directory still sends its events, for its earlier messages.
            needs_context = event.step in ("start", "prompt")
            if event.session and not (needs_context and is_excluded(event.cwd, project, settings.exclude)):
                send = partial(_send, event, project, settings, environ, log)
                found = HookContext(event, project, settings, partial(log.write, f"{client} {name}")).answer()
                output = answer(event, found.context, found.notice)
    with _logging(log, arguments):
        _print(output)
        if send:
            send()
    return 0


def _options(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return the options as variables of the environment, and the other arguments; options may be anywhere."""
    installed: dict[str, str] = {}
    words = iter(word for each in arguments for word in (each.split("=", 1) if each.startswith("--") else [each]))
    others: list[str] = []
    for word in words:
        if name := _OPTIONS.get(word):
            installed |= {name: value} if (value := next(words, "")) else {}
        else:
            others.append(word)
    return installed, others


@contextmanager
def _logging(log: HookLog, arguments: list[str]) -> Generator[None]:
    """Write every error to the log and suppress it: an agent must not fail because of its memory."""
    try:
        yield
    except TimeIsUp:
        log.write(" ".join(arguments), "timed out")
    except Exception as error:  # noqa: BLE001
        log.write(" ".join(arguments), f"{type(error).__name__}: {error}")


def _read_event(client: str, name: str) -> HookEvent:
    if name not in STEPS.get(client, {}):
        known = ", ".join(STEPS.get(client, STEPS))
        raise EskerError(f"Unknown {'event' if client in STEPS else 'client'}; known are {known}.")
    return hook_event(client, name, read_object(sys.stdin.fileno()), system_clock())


def _print(text: str) -> None:
    if not text:
        return
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # A client that ends after a turn has closed the pipe; its session is still sent. The interpreter flushes the
        # rest at exit, which must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _send(
    event: HookEvent, project: str | None, settings: ClientSettings, environ: Mapping[str, str], log: HookLog
) -> None:
    """Send new messages in a process of its own; the client, which has its answer, may continue meanwhile."""
    write = partial(log.write, f"{event.client} {event.name}")

    def work(method: str) -> Callable[[], None]:
        # Only the sending process imports the readers of transcripts, not the one that the client waits for.
        module = "esker.server.agents.capture"
        return lambda: getattr(import_module(module).Capture(settings, event, project, environ), method)()

    def has_started() -> bool:
        try:
            module = import_module("esker.server.agents.server_start")
            return module.Autostart(settings.state_dir).start(settings.url)
        except (EskerError, OSError) as error:
            write(f"The server was not started: {error}")
            return False

    def start_and_catch_up() -> None:
        has_started()
        work("catch_up")()

    def catch_up_if_started() -> None:
        if has_started():
            work("catch_up")()

    match event.step:
        case "start":
            in_background(None, start_and_catch_up, 0.0, write)
        case "prompt" if event.transcript is None:
            # A prompt that is spooled before its hook ends cannot arrive after its answer.
            in_background(work("keep_prompt"), start_and_catch_up, settings.hook_seconds, write)
        case "prompt":
            pass
        case step:
            is_silent = HookState(settings.state_dir, event.received_at).is_silent(settings.url)
            patience = 0.0 if is_silent else min(_PATIENCE[step], settings.hook_seconds)
            in_background(work("transcript"), catch_up_if_started, patience, write)
