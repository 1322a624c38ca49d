"""Tables that fit the terminal: cells are wrapped between words, and a table too wide for that becomes a list."""

import os
from collections.abc import Mapping, Sequence
from typing import TextIO

from rich.cells import cell_len, chop_cells

_GAP = 2
# A column of texts is not made narrower than this; a longer word in it is cut.
_NARROWEST = 20


def width_of(stream: TextIO, environ: Mapping[str, str]) -> int | None:
    """Return the columns that output may use; None for any number, as in a file or a pipe without COLUMNS."""
    columns = environ.get("COLUMNS", "")
    # Digits of other scripts are digits for Python, too.
    if columns.isascii() and columns.isdecimal() and int(columns) > 0:
        return int(columns)
    if not stream.isatty():
        return None
    return os.get_terminal_size(stream.fileno()).columns or None


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """Return the lines of a table, the first with the names of the columns; none is wider than `width` cells.

    Cells without a space (ids, numbers, times) stay whole. If there is no room for them, each row becomes a list.
    """
    places = range(len(columns))
    wanted = [max(cell_len(row[place]) for row in (columns, *rows)) for place in places]
    if width is None:
        widths: list[int] | None = wanted
    else:
        least = [_least(columns[place], [row[place] for row in rows]) for place in places]
        widths = _shared(wanted, least, width - _GAP * (len(columns) - 1))
    if widths is None:
        return _listed(columns, rows, width or 0)
    return [line for row in (columns, *rows) for line in _wrapped_row(row, widths)]


def _least(name: str, cells: Sequence[str]) -> int:
    """Return the width that a column needs: that of its longest word, for texts at most the narrowest width."""
    longest = max(cell_len(word) for cell in cells for word in cell.split(" "))
    if any(" " in cell for cell in cells):
        longest = min(longest, _NARROWEST)
    return max(longest, *(cell_len(word) for word in name.split(" ")))


def _shared(wanted: Sequence[int], least: Sequence[int], room: int) -> list[int] | None:
    """Return the width of each column, or None if there is no room for the least widths."""
    widths, spare = list(least), room - sum(least)
    if spare < 0:
        return None
    # Columns that need little more come first: what they leave is for the wide ones.
    by_need = sorted(range(len(wanted)), key=lambda place: wanted[place] - least[place])
    for done, place in enumerate(by_need):
        more = min(wanted[place] - least[place], spare // (len(wanted) - done))
        widths[place] += more
        spare -= more
    return widths


def _wrapped_row(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    wrapped = [wrapped_cell(cell, width) for cell, width in zip(row, widths, strict=True)]
    lines: list[str] = []
    for number in range(max(map(len, wrapped))):
        parts = [parts_of[number] if number < len(parts_of) else "" for parts_of in wrapped]
        padded = (part + " " * (width - cell_len(part)) for part, width in zip(parts, widths, strict=True))
        lines.append((" " * _GAP).join(padded).rstrip())
    return lines


def wrapped_cell(text: str, width: int) -> list[str]:
    """Return a text in lines of at most `width` terminal cells (at least 2, as a CJK character has); a longer word is
    cut.
    """
    lines: list[str] = []
    for word in text.split(" "):
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines += chop_cells(word, max(width, 2)) or [""]
    return lines


def _listed(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return rows as lists of their cells, with an empty line between rows."""
    lines: list[str] = []
    for row in rows:
        lines += [""] if lines else []
        for name, cell in zip(columns, row, strict=True):
            lines += wrapped_cell(f"{name}: {cell}", width)
    return lines
