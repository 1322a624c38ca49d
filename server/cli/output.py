"""What the command line prints: text for people, JSON for machines, errors with what to do next."""

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from server.core.errors import EskerError

console = Console(highlight=False, soft_wrap=True)
errors = Console(stderr=True, highlight=False, soft_wrap=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


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
    """Print a line; square brackets stay what they are."""
    console.print(text, markup=False)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table."""
    drawn = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        drawn.add_row(*(str(cell) for cell in row))
    console.print(drawn)


def show_error(error: EskerError) -> None:
    """Print what happened, why, and what to do next, on standard error; as JSON when JSON was asked for."""
    if "--json" in sys.argv:
        print_json({"error": str(error), "hint": error.hint})
        return
    errors.print(f"esker: {error}", markup=False, style="red")
    if error.hint:
        errors.print(f"       {error.hint}", markup=False)


def progress(*, shown: bool = True) -> Progress:
    """Return a progress display on standard error, so that standard output stays clean."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=errors,
        disable=not shown,
    )
