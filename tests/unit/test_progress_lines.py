"""Where no terminal draws bars, long work says in lines what it does, from its first moment."""

import pytest
from rich.console import Console

from esker.server.cli import output


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Console:
    """Standard error as a file, recorded."""
    recorded = Console(record=True, width=200, soft_wrap=True, force_terminal=False)
    monkeypatch.setattr(output, "errors", recorded)
    return recorded


def test_a_step_is_named_when_it_begins_and_when_it_ends(lines: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    with output.progress() as shown:
        monkeypatch.setattr(shown, "get_time", lambda: 0.0)
        task = shown.add_task("Reading", total=2)
        assert lines.export_text(clear=False) == "Reading …\n"
        shown.advance(task)
        shown.advance(task)
        for _ in shown.track(range(3), description="Writing"):
            pass
    said = lines.export_text().splitlines()
    assert said == ["Reading …", "Reading: 2 of 2 after 0 s", "Writing …", "Writing: 3 of 3 after 0 s"]


def test_a_long_step_says_now_and_then_how_far_it_is(lines: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    with output.progress() as shown:
        monkeypatch.setattr(shown, "get_time", lambda: now)
        task = shown.add_task("Embedding", total=40)
        for now in range(1, 26):  # noqa: B007 - the time
            shown.advance(task)
    assert lines.export_text().splitlines() == [
        "Embedding …",
        "Embedding: 10 of 40 after 10 s, 30 s left",
        "Embedding: 20 of 40 after 20 s, 20 s left",
    ]


def test_nothing_is_said_where_json_is_asked_for(lines: Console) -> None:
    with output.progress(shown=False) as shown:
        shown.add_task("Reading", total=2)
    assert lines.export_text() == ""
