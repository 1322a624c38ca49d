"""Tables keep to the width of the terminal and lose nothing."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from esker.server.cli.tables import table_lines, width_of

CELLS = st.text(st.sampled_from("ab12 -日本語한글é"), max_size=40).map(lambda cell: " ".join(cell.split()))
TABLES = st.integers(1, 4).flatmap(
    lambda columns: st.lists(st.lists(CELLS, min_size=columns, max_size=columns), min_size=1, max_size=5)
)


@given(TABLES, st.integers(2, 120))
def test_no_line_is_wider_than_the_terminal_and_no_character_is_lost(rows: list[list[str]], width: int) -> None:
    columns = ["id", "text", "project", "tokens"][: len(rows[0])]
    lines = table_lines(columns, rows, width)
    assert all(cell_len(line) <= width for line in lines)
    cells = "".join("".join(row) for row in rows).replace(" ", "")
    shown = "".join(lines)
    assert all(shown.count(character) >= cells.count(character) for character in set(cells))


@given(TABLES)
def test_without_a_width_each_row_is_one_line(rows: list[list[str]]) -> None:
    columns = ["id", "text", "project", "tokens"][: len(rows[0])]
    assert len(table_lines(columns, rows, None)) == 1 + len(rows)


def test_texts_are_wrapped_and_ids_stay_whole() -> None:
    rows = [["mem_019a0b0c0d0e0f", "日本語のテキスト and some words of another script"]]
    assert table_lines(["id", "text"], rows, 44) == [
        "id                  text",
        "mem_019a0b0c0d0e0f  日本語のテキスト and",
        "                    some words of another",
        "                    script",
    ]
    assert table_lines(["id", "text"], rows, 25)[0] == "id: mem_019a0b0c0d0e0f"
    address = [["mem_019a0b0c0d0e0f", f"see http://127.0.0.1/{'x' * 60}"]]
    assert table_lines(["id", "text"], address, 44)[0] == "id                  text", "a long word in a text is cut"


class _Pipe:
    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return -1


def test_columns_is_obeyed_also_in_a_pipe() -> None:
    assert width_of(_Pipe(), {"COLUMNS": "60"}) == 60  # pyright: ignore[reportArgumentType]
    for given_columns in ({}, {"COLUMNS": "0"}, {"COLUMNS": "wide"}, {"COLUMNS": "-5"}, {"COLUMNS": "٣"}):
        assert width_of(_Pipe(), given_columns) is None  # pyright: ignore[reportArgumentType]
