"""Sessions in which something changes, or must not, read by the extractive observer one after the other.

`old` is a pattern of the statement that the later one is about, and `now` of what is left in the end. The outcome is
`replaced`: no row states the old; `noted`: a newer row says that the old one has another value; or `kept`: neither.
"""

import re
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict

from esker.server.core.conversation.records import Role
from esker.server.core.facts.records import TranscriptSlice
from esker.server.core.records import Memory
from esker.server.core.text import labels
from esker.server.core.text.labels import own_statement
from esker.server.providers.extractive.observer import observe
from tests.support.records import message, observation, session

CASES = Path(__file__).parents[1] / "cases" / "changed_sessions.jsonl"
DAY = 24 * 60


class ScriptedMessage(BaseModel):
    """A message."""

    model_config = ConfigDict(extra="forbid")

    role: Role
    content: str


class ChangedSessions(BaseModel):
    """Sessions and their outcome."""

    model_config = ConfigDict(extra="forbid")

    name: str
    sessions: list[list[ScriptedMessage]]
    old: str
    now: str
    outcome: Literal["replaced", "noted", "kept"]


def every_case() -> list[ChangedSessions]:
    """Return the cases of the file."""
    return [ChangedSessions.model_validate_json(line) for line in CASES.read_text(encoding="utf-8").splitlines()]


def rows_of(case: ChangedSessions) -> list[Memory]:
    """Return the rows that are left after the last session."""
    rows: list[Memory] = []
    for number, turns in enumerate(case.sessions):
        start = number * DAY + 1
        messages = tuple(message(start + place, turn.role, turn.content) for place, turn in enumerate(turns))
        facts = observe(TranscriptSlice(session(id=f"ses_{number}"), messages, (), (), tuple(rows))).facts
        gone = {name for fact in facts for name in (fact.replaces or "").splitlines()}
        rows = [row for row in rows if row.id not in gone]
        rows += [
            observation(fact.content, min(fact.source_seqs), trust=fact.trust, category=fact.category)
            for fact in facts
            if fact.content not in gone
        ]
    return rows


@pytest.mark.parametrize("case", every_case(), ids=lambda case: case.name)
def test_a_later_statement_replaces_what_it_changes_and_nothing_else(case: ChangedSessions) -> None:
    rows = rows_of(case)
    stated = [own_statement(row.content) for row in rows]
    noted = any(labels.UNLIKE in row.content for row in rows)
    is_stated = any(re.search(case.old, text) for text in stated)
    assert any(re.search(case.now, text) for text in stated)
    assert (is_stated, noted) == {"replaced": (False, noted), "noted": (True, True), "kept": (True, False)}[
        case.outcome
    ]
