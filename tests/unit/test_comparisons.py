"""How often the extractive parts look at a row: a long session must not take the square of its length."""

from datetime import timedelta
from typing import Any

import pytest

from esker.server.core.conversation.records import Role
from esker.server.providers.extractive import momentary, objections
from esker.server.providers.extractive.observer import observe
from tests.support.records import NOON, conversation, memory

ROWS = 40


class Counted:
    """Counts the calls of a function."""

    def __init__(self, module: Any, name: str, patch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        self._function = getattr(module, name)
        patch.setattr(module, name, self)

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        self.calls += 1
        return self._function(*arguments)


def test_a_report_is_compared_with_the_next_message_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Counted(objections, "names", monkeypatch)
    said: list[tuple[Role, str]] = []
    for n in range(ROWS):
        said.append(("user", f"Please rename parser_{n}."))
        said.append(("assistant", f"Renamed `parser_{n}` to `reader_{n}`."))
    found = observe(conversation(*said)).facts
    assert len(found) >= ROWS
    assert 0 < read.calls <= len(found)


def test_a_row_is_read_once_however_many_others_are_compared_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Counted(momentary, "read_values", monkeypatch)
    rows = [
        memory(
            f"Assistant found: The module counted_{n} exports reader_{n} on port {7_000 + n}.",
            trust="assistant", kind="observation", session_id="s", said_at=NOON + timedelta(minutes=n),
        )
        for n in range(ROWS)
    ]  # fmt: skip
    assert not any(momentary.is_momentary(row, rows) for row in rows)
    assert 0 < read.calls <= 3 * ROWS
