"""A run of real agent CLIs shows where it is."""

from collections.abc import Iterator

import pytest

from tests.clients.progress import Progress
from tests.clients.promises import Outcome


def test_a_run_shows_each_promise_with_its_time_before_the_next_one_is_tried(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = 0.0
    printed: list[str] = []

    def trial() -> Iterator[Outcome]:
        nonlocal now
        for promise, kept, detail in (("pack", True, ""), ("resume", False, "exit code 1"), ("compaction", None, "")):
            now += 61.5
            yield Outcome(promise, kept, detail)
            printed.append(capsys.readouterr().err)

    progress = Progress(2, clock=lambda: now)
    progress.begin("codex with hooks")
    assert [each.kept for each in progress.shown(trial())] == [True, False, None]
    progress.begin("pi with hooks")
    assert printed == [
        "1 of 2, after 0 min 0 s: codex with hooks\n   61.5 s  pack: yes\n",
        "   61.5 s  resume: NO (exit code 1)\n",
        "   61.5 s  compaction: -\n",
    ]
    assert capsys.readouterr().err == "2 of 2, after 3 min 4 s: pi with hooks\n"
