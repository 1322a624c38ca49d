"""The deadline of a hook is for the server's answer, not for what the hook itself imports on a busy machine."""

import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from esker.server import agents
from esker.server.agents import api
from esker.server.agents.hook_context import HookContext
from esker.server.agents.hook_input import hook_event
from esker.server.core.config.client_settings import ClientSettings

_API = "esker.server.agents.api"


class _Noting:
    """A finder of modules that notes when the connection is imported."""

    def __init__(self, events: list[object]) -> None:
        self._events = events

    def find_spec(self, name: str, *_: Any) -> None:
        if name == _API:
            self._events.append("imported")


def test_the_time_of_an_import_does_not_count_as_silence_of_the_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    events: list[object] = []

    def set_timer(which: int, seconds: float) -> tuple[float, float]:
        events.append(seconds)
        return (0.4, 0.0)

    monkeypatch.setattr(signal, "setitimer", set_timer)
    monkeypatch.setattr(agents, "api", api)  # which the import below replaces
    monkeypatch.delitem(sys.modules, _API)
    monkeypatch.setattr(sys, "meta_path", [_Noting(events), *sys.meta_path])
    event = hook_event("claude-code", "SessionStart", {"session_id": "s1"}, datetime(2026, 11, 30, tzinfo=UTC))
    context = HookContext(event, None, ClientSettings(url="http://127.0.0.1:1", state_dir=tmp_path), lambda _: None)
    assert context._api.url == "http://127.0.0.1:1"
    assert events == [0, "imported", 0.4]
