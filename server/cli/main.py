"""The entry point of `esker`.

A verb's module is imported when the verb is called, and `--help` imports none: a command that an agent runs in every
turn must not import the server, the database and the models.
"""

import os
import signal
import sys
from io import TextIOWrapper
from typing import Annotated, Any, NoReturn, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from esker.server import VERSION
from esker.server.cli.late_imports import imported
from esker.server.cli.output import AS_JSON, show_error
from esker.server.core.errors import EskerError

# Verb → its module and its line in the help.
VERBS: dict[str, tuple[str, str]] = {
    "serve": ("serve", "Run the server: HTTP, MCP and an embedding worker."),
    "worker": ("serve", "Run an embedding worker alone."),
    "mcp": ("mcp", "Speak MCP on standard input and output, for clients that start their servers."),
    "hook": ("hook", "Handle an event of an agent CLI, with JSON on standard input."),
    "demo": ("demo", "Show what Esker does on a sample transcript."),
    "setup": ("setup", "Choose what writes memories, try one call, and write the settings file."),
    "install": ("install", "Set agent CLIs up for Esker: its MCP server and its hooks."),
    "uninstall": ("install", "Remove Esker from agent CLIs."),
    "ingest": ("ingest", "Send transcripts of agents to the server, except what was sent before."),
    "exclude": ("exclude", "Exclude projects and directories from memory, or show what is excluded."),
    "spool": ("spool", "Show the parcels that hooks could not send yet, or send or delete them."),
    "sessions": ("sessions", "List sessions, the most recently begun first, or show the memory of one."),
    "observe": ("sessions", "Observe the unobserved messages of one session or of all."),
    "reflect": ("reflections", "Condense memories of one session, of all sessions, or of the pool."),
    "reflections": ("reflections", "List reflections, show the changes of one, or undo it."),
    "pack": ("sessions", "Show the context pack of a session."),
    "open": ("open_page", "Open the page of the server in the browser: what memory holds, and why."),
    "status": ("status", "Show what memory contains, and how much of it cannot be found yet."),
    "briefing": ("briefing", "Show the most important memories of a project, and the state of its latest session."),
    "recall": ("memories", "Ask memory a question."),
    "expand": ("expand", "Show the sources of a memory or a passage, and the messages around them."),
    "memories": ("memories", "List memories, newest first."),
    "remember": ("memories", "Write a memory about the current repository; outside of one, about all projects."),
    "edit": (
        "memories",
        "Replace a memory by one with other words, priority, category or tags; the old one is kept as superseded.",
    ),
    "pin": ("memories", "Put a memory first in every pack; the row that it was is kept as superseded."),
    "confirm": ("memories", "Confirm that a memory which an agent wrote is your word."),
    "forget": (
        "forgetting",
        "Delete memories, passages, or all that says some words, with what was drawn from it and repeats it.",
    ),
    "quarantine": (
        "quarantine",
        "Take a source out of recall and packs, or bring it back; without options, list quarantines.",
    ),
    "export": ("exporting", "Write a pool's memory into files: all of it, a MEMORY.md, daily logs."),
    "import": ("importing", "Read a file that `esker export jsonl` has written."),
    "spend": ("spend", "Show the cost of language models, and the daily cap."),
    "backup": ("backup", "Write the whole database into one file, as it is at one moment; servers go on meanwhile."),
    "restore": ("backup", "Restore a backup, check it, and put it in the place of the database."),
    "migrate": ("admin", "Bring the database's schema up to date."),
    "pool": ("admin", "Create, list and configure pools."),
    "key": ("admin", "Create, list and revoke keys."),
    "jobs": ("jobs", "Show jobs, run one again, or drop one."),
    "audit": ("audit", "Show who wrote, read in bulk, exported, forgot or changed keys, newest first."),
    "scan": ("scan", "Look through everything that is stored for secrets, and mask them."),
    "reembed": ("reembed", "Switch to another embedding model, or back."),
    "doctor": ("doctor", "Check everything that can be wrong and say how to fix it."),
    "eval": (
        "evaluation",
        "Measure how well a pool's memory can be found, and report faults.",
    ),
    "bench": ("bench", "Measure Esker's speed on this machine, each figure beside its floor."),
}


WRONG_USAGE = 2
"""The exit code of a command that was called in a wrong way."""
_REPORT = "This is a bug in Esker. ESKER_LOG_LEVEL=debug shows the whole error."
_SYSTEM = "Check that it exists and that you may use it. ESKER_LOG_LEVEL=debug shows the whole error."


class Verbs(TyperGroup):
    """Lists the verbs without importing their modules, which happens when a verb is called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {verb: TyperCommand(verb, help=line) for verb, (_, line) in VERBS.items()}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a verb; for the help page, only its name and its line."""
        if cmd_name not in VERBS or not ctx.meta.get("esker.call"):
            return self.commands.get(cmd_name)
        module, _ = VERBS[cmd_name]
        group: Any = typer.main.get_command(imported(f"esker.server.cli.{module}").app)
        return group.get_command(ctx, cmd_name) if isinstance(group, TyperGroup) else group

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the called verb, whose module has to be imported."""
        ctx.meta["esker.call"] = True
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    help="Esker: the memory that your agents share. Settings come from ESKER_… variables.",
)


def _show_version(asked: bool) -> None:
    if asked:
        print(f"esker {VERSION}")
        raise typer.Exit


@app.callback()
def _esker(
    version: Annotated[
        bool, typer.Option("--version", "-V", is_eager=True, callback=_show_version, help="Show the version.")
    ] = False,
) -> None:
    pass


def run() -> None:
    """Run the command line and exit: 0 for success, 1 for an error, 2 for wrong usage."""
    for stream in (sys.stdout, sys.stderr):
        # The name of a file may not be valid text.
        cast("TextIOWrapper", stream).reconfigure(errors="backslashreplace")
    command: Any = typer.main.get_command(app)
    try:
        # Without --json, wrong usage is shown by the library, which exits.
        sys.exit(command(prog_name="esker", standalone_mode=AS_JSON not in sys.argv))
    except EskerError as error:
        _fail(error)
    except TyperException as error:
        wrong: Any = error
        _fail(
            EskerError(wrong.format_message(), hint=f"`{wrong.ctx.command_path} --help` shows the usage."), WRONG_USAGE
        )
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        if os.environ.get("ESKER_LOG_LEVEL") == "debug":
            raise
        _fail(_unexpected(error))


def _fail(error: EskerError, code: int = 1) -> NoReturn:
    # A parent that reads the error may close its end of standard input, which would interrupt a server (`serve`).
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    show_error(error)
    sys.exit(code)


def _has_working_directory() -> bool:
    try:
        return bool(os.getcwd())
    except FileNotFoundError:
        return False


def _unexpected(error: Exception) -> EskerError:
    if isinstance(error, FileNotFoundError) and not _has_working_directory():
        return EskerError("The working directory no longer exists.", hint="Change to another directory.")
    if isinstance(error, OSError) and error.strerror:
        subject = f"{os.fsdecode(error.filename)}: " if error.filename is not None else ""
        return EskerError(f"The operating system refused: {subject}{error.strerror}.", hint=_SYSTEM)
    return EskerError(f"An unexpected {type(error).__name__}: {error}", hint=_REPORT)


if __name__ == "__main__":
    run()
