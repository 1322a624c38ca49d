"""Output of the command line: text for people, JSON for machines, errors with what to do next."""

import json
import os
import re
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from esker.server.cli.tables import table_lines, width_of
from esker.server.core.errors import EskerError, InvalidInput

# With emoji, `:x:` in a text would be shown as a cross.
console = Console(highlight=False, soft_wrap=True, emoji=False)
errors = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)

_LINE_SECONDS = 10.0
"""How often a step that takes long says how far it is, where no terminal shows a bar."""
# Control characters that a terminal obeys, except line end and tab.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

AS_JSON = "--json"
AsJson = Annotated[bool, typer.Option(AS_JSON, help="Print JSON for machines.")]
DataDir = Annotated[Path | None, typer.Option(help="Where the embedded Postgres keeps its files.")]


def print_json(value: Any) -> None:
    """Print one JSON document on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=_plain) + "\n")
    sys.stdout.flush()


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)


def say(text: str = "") -> None:
    """Print a line as it is: without markup, and without control characters for the terminal."""
    console.print(_CONTROLS.sub("", text), markup=False)


def note(text: str) -> None:
    """Print a line about the output on standard error, so that standard output has the output alone."""
    errors.print(text, markup=False, style="dim")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table that fits the terminal, or COLUMNS; in a file or a pipe without it, each row is one line."""
    shown = [[" ".join(_CONTROLS.sub("", str(cell)).split()) for cell in row] for row in rows]
    if not shown:
        say("None.")
        return
    first, *others = table_lines(columns, shown, width_of(sys.stdout, os.environ))
    console.print(first, markup=False, style="bold")
    for line in others:
        console.print(line, markup=False)


class WrongUsage(InvalidInput):
    """The command was called in a wrong way; it exits with 2."""


def show_error(error: EskerError) -> None:
    """Print an error and its hint on standard error; with --json, as JSON on standard output."""
    if AS_JSON in sys.argv:
        print_json({"error": str(error), "hint": error.hint})
        return
    errors.print(f"esker: {error}", markup=False, style="red")
    if error.hint:
        errors.print(f"       {error.hint}", markup=False)


class _Rate(ProgressColumn):
    """How much is done in a second."""

    def render(self, task: Task) -> Text:
        """Return the rate; a dash before there is one."""
        speed = task.finished_speed or task.speed
        return Text("–/s" if speed is None else f"{speed:,.0f}/s")


class _ProgressLines(Progress):
    """Progress where no terminal draws bars, as in a log: a line when a step begins, now and then, and when it ends."""

    def __init__(self) -> None:
        super().__init__(disable=True, auto_refresh=False)
        self._told: dict[TaskID, float] = {}

    def add_task(self, description: str, *args: Any, **options: Any) -> TaskID:
        """Begin a step."""
        errors.print(f"{description} …", markup=False)
        task = super().add_task(description, *args, **options)
        self._told[task] = self.get_time()
        return task

    def update(self, task_id: TaskID, **changes: Any) -> None:
        """Change a step."""
        with self._showing(task_id):
            super().update(task_id, **changes)

    def advance(self, task_id: TaskID, advance: float = 1) -> None:
        """Count finished units of a step."""
        with self._showing(task_id):
            super().advance(task_id, advance)

    @contextmanager
    def _showing(self, task_id: TaskID) -> Generator[None]:
        task = self._tasks[task_id]
        was_finished = task.finished
        yield
        now = self.get_time()
        if not was_finished and (task.finished or now - self._told[task_id] >= _LINE_SECONDS):
            self._told[task_id] = now
            left = "" if task.finished or task.time_remaining is None else f", {task.time_remaining:.0f} s left"
            done = f"{task.completed:,.0f} of {task.total:,.0f}" if task.total else f"{task.completed:,.0f}"
            errors.print(f"{task.description}: {done} after {task.elapsed or 0:.0f} s{left}", markup=False)


def progress(*, shown: bool = True) -> Progress:
    """Return a progress display on standard error, so that standard output stays clean."""
    if shown and not errors.is_terminal:
        return _ProgressLines()
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=errors,
        disable=not shown,
    )
