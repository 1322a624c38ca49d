"""Foreign transcripts as the tail of a context: valid for the Messages API wherever they are cut."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from esker.server.agents.readers import READERS
from esker.server.core.context.assembly import cut_tail
from esker.server.core.context.tail import first_needed
from esker.server.core.conversation import blocks
from tests.support.foreign import conversations
from tests.support.messages_api import faults
from tests.support.records import message


def test_wherever_a_transcript_is_cut_the_tail_is_valid(transcripts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Every cut estimates the tokens of the same texts.
    monkeypatch.setattr(blocks, "estimate_tokens", cache(blocks.estimate_tokens))
    clients: set[str] = set()
    calls = 0
    for name, entries in conversations(transcripts):
        clients.add(name.partition("/")[0])
        stored = [message(seq, entry["role"], entry["content"]) for seq, entry in enumerate(entries, start=1)]
        steps = range(0, len(stored) + 1, max(1, len(stored) // 8))
        for observed in steps:
            for keep_last, budget in ((0, 0), (12, 0), (1, 500), (12, 20_000)):
                tail = cut_tail(stored, first_needed(len(stored), observed, keep_last), budget, ())
                assert faults(tail.messages) == [], (name, observed, keep_last, budget)
        whole: list[Any] = cut_tail(stored, 1, 0, ()).messages
        calls += sum(block["type"] == "tool_use" for sent in whole for block in sent["content"])
    assert clients == set(READERS)
    assert calls > 100
