"""Rewound messages of Claude Code are dropped, and other branches are not."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from esker.server.agents.claude_code import read_transcript
from esker.server.agents.transcript import ParsedTranscripts
from tests.support.transcripts import names, written

AT = "2026-03-02T09:00:00.000Z"


def line(name: str, parent: str | None, kind: str = "user", **more: Any) -> dict[str, Any]:
    """Return a line of Claude Code with a parent."""
    message = {"role": kind, "content": f"{name} is said."}
    base = {"type": kind, "uuid": name, "parentUuid": parent, "sessionId": "s1", "timestamp": AT, "isSidechain": False}
    return base | ({"message": message} if kind in ("user", "assistant") else {}) | more


def called(name: str, parent: str) -> dict[str, Any]:
    """Return a line with a call."""
    block = {"type": "tool_use", "id": name, "name": "Bash", "input": {}}
    return line(name, parent, "assistant", message={"role": "assistant", "content": [block]})


def answered(name: str, parent: str) -> dict[str, Any]:
    """Return a line with the result of a call, its parent."""
    block = {"type": "tool_result", "tool_use_id": parent, "content": "ok"}
    return line(name, parent, message={"role": "user", "content": [block]})


def read(folder: Path, *lines: Any) -> ParsedTranscripts:
    """Read lines as a file."""
    return read_transcript(written(folder / "s1.jsonl", *lines))


def kept(folder: Path, *lines: Any) -> list[str]:
    """Return the ids of the messages that were not rewound."""
    return [name for transcript in read(folder, *lines).transcripts for name in names(transcript)]


INTERRUPTED = {"role": "user", "content": "[Request interrupted by user]"}
START = (line("u1", None), line("a1", "u1", "assistant"))
FIRST = (line("u2", "a1"), called("a2", "u2"), answered("r2", "a2"), line("a3", "r2", "assistant"))
SECOND = (line("u3", "a1"), line("a4", "u3", "assistant"))


def test_a_rewound_prompt_is_dropped_with_its_answers_and_the_new_one_kept(tmp_path: Path) -> None:
    reading = read(tmp_path, *START, *FIRST, *SECOND)
    assert names(reading.transcripts[0]) == ["u1", "a1", "u3", "a4"]
    assert reading.skipped == {"message that was rewound": 4}


def test_prompts_rewound_twice_or_far_above_are_dropped(tmp_path: Path) -> None:
    again = (line("u4", "a1"), line("a5", "u4", "assistant"), line("u5", "a5"))
    assert kept(tmp_path, *START, *FIRST, *SECOND, *again) == ["u1", "a1", "u4", "a5", "u5"]
    inner = (line("u6", "a4"), line("u7", "a4"))
    assert kept(tmp_path, *START, *SECOND, *inner) == ["u1", "a1", "u3", "a4", "u7"]
    assert kept(tmp_path, *START, *SECOND, *inner, line("u8", "a1")) == ["u1", "a1", "u8"]


def test_lines_that_are_not_messages_do_not_hide_a_rewind(tmp_path: Path) -> None:
    lines = (
        *START,
        line("s1", "a1", "system", subtype="turn_duration"),
        line("h1", "s1", "attachment", attachment={"type": "hook_success"}),
        line("u2", "h1"),
        line("a2", "u2", "assistant"),
        line("s2", "a1", "system", subtype="local_command"),
        line("u3", "s2"),
    )
    assert kept(tmp_path, *lines) == ["u1", "a1", "u3"]


@pytest.mark.parametrize(
    "lines",
    [
        # Parallel calls: nothing follows the first result.
        (*START, line("u2", "a1"), called("c1", "u2"), called("c2", "c1"), answered("r1", "c1"), answered("r2", "c2"),
         line("a3", "r2", "assistant"), line("u4", "a3")),
        # The next prompt follows an interrupted turn, and one that ended in an error.
        (*START, line("u2", "a1"), line("i1", "u2", message=INTERRUPTED), line("u3", "i1")),
        (*START, line("u2", "a1"), line("e1", "u2", "assistant", isApiErrorMessage=True), line("u3", "e1")),
        # A session opened twice: the first continues after the second has begun.
        (*START, line("u2", "a1"), line("u3", "a1"), line("a2", "u2", "assistant"), line("a3", "u3", "assistant")),
        # Prompts without a parent, or with a missing one.
        (line("u1", None), line("a1", "u1", "assistant"), line("u2", None), line("u3", "x"), line("u4", "x")),
        # A compaction restarts the conversation.
        (*START, line("u2", "a1"), line("b1", None, "system", subtype="compact_boundary", logicalParentUuid="a1"),
         line("c1", "b1", isCompactSummary=True), line("u3", "c1")),
        # A prompt that branches off an earlier answer, not in place of a prompt.
        (*START, called("c1", "a1"), answered("r1", "c1"), line("u2", "a1")),
    ],
)  # fmt: skip
def test_other_branches_are_not_rewinds(tmp_path: Path, lines: Sequence[Any]) -> None:
    reading = read(tmp_path, *lines)
    assert reading.skipped["message that was rewound"] == 0
    unsaid = ("i1", "e1", "b1")
    said = [each["uuid"] for each in lines if each["uuid"] not in unsaid and not each.get("isCompactSummary")]
    assert names(reading.transcripts[0]) == said


def test_a_compaction_after_a_rewind_brings_nothing_back_and_loses_nothing(tmp_path: Path) -> None:
    boundary = line("b1", None, "system", subtype="compact_boundary", logicalParentUuid="a4")
    summary = line("c1", "b1", isCompactSummary=True)
    preserved = line("a4", "c1", "assistant")  # repeated below the summary
    lines = (*START, *FIRST, *SECOND, boundary, summary, preserved, line("u4", "a4"), line("a5", "u4", "assistant"))
    assert kept(tmp_path, *lines) == ["u1", "a1", "u3", "a4", "u4", "a5"]
    rewound = (*lines, line("u5", "a4"))
    assert kept(tmp_path, *rewound) == ["u1", "a1", "u3", "a4", "u5"]


def test_a_prompt_after_a_compaction_can_be_rewound(tmp_path: Path) -> None:
    boundary = line("b1", None, "system", subtype="compact_boundary", logicalParentUuid="a1")
    lines = (*START, boundary, line("c1", "b1", isCompactSummary=True), line("u2", "c1"), line("u3", "c1"))
    assert kept(tmp_path, *lines) == ["u1", "a1", "u3"]


def test_side_chains_and_sub_agents_stay_as_they_are(tmp_path: Path) -> None:
    side = (line("x1", None, isSidechain=True), line("x2", "x1", isSidechain=True), line("x3", "x1", isSidechain=True))
    assert sorted(kept(tmp_path, *START, *side)) == ["a1", "u1", "x1", "x2", "x3"]


KINDS = st.sampled_from(["ask", "say", "call", "note"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(KINDS, st.integers(0, 12)), min_size=1, max_size=12))
def test_the_branch_of_the_last_line_is_always_kept(tmp_path: Path, shape: list[tuple[str, int]]) -> None:
    lines: list[dict[str, Any]] = []
    for number, (kind, parent) in enumerate(shape):
        follows = f"n{parent % number}" if number else None
        if kind == "note":
            lines.append(line(f"n{number}", follows, "system"))
        else:
            lines.append(line(f"n{number}", follows, "user" if kind == "ask" else "assistant"))
    found = set(kept(tmp_path, *lines))
    by_name = {each["uuid"]: each for each in lines}
    at: str | None = lines[-1]["uuid"]
    while at:
        assert at in found or by_name[at]["type"] == "system"
        at = by_name[at]["parentUuid"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=10))
def test_a_cycle_of_parents_does_not_hang(tmp_path: Path, links: list[tuple[int, int]]) -> None:
    kept(tmp_path, *(line(f"n{name}", f"n{parent}") for name, parent in links))
