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
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.exceptions import TyperException

from esker.server import VERSION
from esker.server.cli.late_imports import imported
from esker.server.cli.output import AS_JSON, WrongUsage, show_error
from esker.server.cli.verbs import PANELS, VERBS
from esker.server.core.errors import EskerError

WRONG_USAGE = 2
"""The exit code of a command that was called in a wrong way."""
_REPORT = "This is a bug in Esker. ESKER_LOG_LEVEL=debug shows the whole error."
_SYSTEM = "Check that it exists and that you may use it. ESKER_LOG_LEVEL=debug shows the whole error."


class Verbs(TyperGroup):
    """Lists the verbs without importing their modules, which happens when a verb is called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {
            verb: TyperCommand(verb, help=line, rich_help_panel=panel)
            for panel, verbs in PANELS.items()
            for verb, (_, line) in verbs.items()
        }

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


def _value(self: Any, ctx: Any) -> str:
    """Return the placeholder of a value on help pages: its choices, TEXT, NUMBER, PATH, or "" for a switch."""
    kind = self.type_descriptor
    if kind.is_choice:
        return "|".join(str(getattr(choice, "value", choice)) for choice in kind.choices)
    if isinstance(self, TyperArgument) or self.is_flag:
        return ""
    one = self.bare_type().removeprefix("list[").removesuffix("]")
    return {"int": "NUMBER", "float": "NUMBER", "Path": "PATH"}.get(one, "TEXT")


# The library shows Python's types there: <list[str]>, and <bool> behind a switch that takes no value.
TyperArgument.display_type = TyperOption.display_type = _value

app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
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
        _fail(error, WRONG_USAGE if isinstance(error, WrongUsage) else 1)
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
