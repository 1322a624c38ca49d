"""Output of a run: progress, remarks and errors on standard error, tables on standard output, JSON in a file."""

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from esker.server.core.errors import EskerError, InvalidInput

_WIDEST = 10_000
_aside = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def say(line: str) -> None:
    """Print a line on standard output, with control characters replaced."""
    typer.echo(_CONTROLS.sub("\N{REPLACEMENT CHARACTER}", line))


def remark(text: str) -> None:
    """Print a line about the run on standard error, so that standard output has only figures."""
    _aside.print(_CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text), markup=False, style="dim")


def show_error(error: EskerError) -> None:
    """Print what happened, why, and what to do next, on standard error."""
    _aside.print(f"evals: {error}", markup=False, style="red")
    if error.hint:
        _aside.print(f"       {error.hint}", markup=False)


def progress() -> Progress:
    """Return a progress display on standard error."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=_aside,
    )


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table: text in the first column, figures in the others."""
    drawn = Table(box=None, pad_edge=False, header_style="bold", title=escape(title), title_justify="left")
    for place, column in enumerate(columns):
        drawn.add_column(column, no_wrap=True, justify="right" if place else "left")
    for row in rows:
        drawn.add_row(*(escape(cell) for cell in row))
    Console(highlight=False, width=_WIDEST, emoji=False).print(drawn)


def percent(share: float | None) -> str:
    """Return a share from 0 to 1 as a percentage with one decimal; a dash for None."""
    return "–" if share is None else f"{100 * share:.1f}"


def writable(path: Path | None) -> Path | None:
    """Return the path. Raises InvalidInput if it cannot be written, before a run that may take hours."""
    if path is None:
        return None
    if not path.parent.is_dir():
        raise InvalidInput(f"{path} cannot be written: the folder {path.parent} does not exist.", hint="Make it first.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InvalidInput(f"{path} cannot be written: permission denied.", hint="Name a file elsewhere.")
    return path


def write_json(path: Path, value: object) -> None:
    """Write one JSON document. Raises InvalidInput if the file cannot be written."""
    try:
        path.write_text(json.dumps(value, ensure_ascii=False, indent=1, default=_plain) + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}.") from error


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, frozenset | set):
        return sorted(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
