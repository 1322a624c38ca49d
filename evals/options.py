"""The options of the commands, each declared once."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from evals.output import writable

By = Literal["extractive", "model"]
"""The kind of observer or reflector: rules, or a model behind the Messages API."""

CasesFile = Annotated[Path, typer.Option("--cases", exists=True, dir_okay=False, help="A file of cases.")]
JsonOption = Annotated[
    Path | None, typer.Option("--json", dir_okay=False, callback=writable, help="Write everything to this file.")
]
Url = Annotated[str | None, typer.Option("--url", help="A running server; by default one is started for the run.")]
KeyOption = Annotated[str | None, typer.Option("--key", envvar="ESKER_KEY", help="The key of that server.")]


@dataclass(frozen=True, slots=True)
class SuiteOptions:
    """The options that suites share; a suite has those that it names in `takes`."""

    only: Annotated[list[str] | None, typer.Option("--only", help="Only cases whose names begin with this.")] = None
    observer: Annotated[By | None, typer.Option(help="Rules, which is the default, or the model of ESKER_….")] = None
    reflector: Annotated[By | None, typer.Option(help="Rules, which is the default, or the model of ESKER_….")] = None
    reflecting: Annotated[
        bool, typer.Option("--reflect/--no-reflect", help="Reflect, and ask the questions again after that.")
    ] = True
    judge: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Also ask this model (of ESKER_LLM_…) for its opinion.")
    ] = None
    questions: Annotated[
        bool, typer.Option("--questions/--no-questions", help="Ask the questions, and check the next pack.")
    ] = True
    record: Annotated[Path | None, typer.Option(file_okay=False, help="Keep the model's answers here.")] = None
    replay: Annotated[
        Path | None, typer.Option(exists=True, file_okay=False, help="Take the model's answers from here.")
    ] = None
    url: Url = None
    key: KeyOption = None
    json_file: JsonOption = None


def takes(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add these options of `SuiteOptions` to a command, which gets their values as `options`."""
    shared = [parameter for name, parameter in signature(SuiteOptions).parameters.items() if name in names]

    def add(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(*arguments: Any, **given: Any) -> None:
            options = SuiteOptions(**{name: given.pop(name) for name in names if name in given})
            command(*arguments, **given, options=options)

        own = [parameter for parameter in signature(command).parameters.values() if parameter.name != "options"]
        # Typer reads the options of a command from its signature.
        run.__dict__["__signature__"] = Signature([*own, *shared])
        return run

    return add
