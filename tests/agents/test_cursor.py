"""The reader of Cursor: lines without ids and times, in folders named after directories."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from esker.server.agents.cursor import read_transcript
from tests.support.transcripts import names, only, shown, written


def line(role: str, *blocks: Any) -> dict[str, Any]:
    """Return a line as Cursor writes it."""
    return {"role": role, "message": {"content": list(blocks)}}


def text(words: str) -> dict[str, Any]:
    """Return a text block."""
    return {"type": "text", "text": words}


def test_messages_become_entries_with_stable_ids(tmp_path: Path) -> None:
    path = tmp_path / "t1.jsonl"
    lines = [line("user", text("Hi.")), line("assistant", text("Ho.")), {"type": "turn_ended", "status": "success"}]
    first = only(read_transcript(written(path, *lines)))
    reading = read_transcript(written(path, *lines, line("user", text("Hi."))))
    transcript = only(reading)
    assert (transcript.external_id, shown(transcript)) == ("t1", ["user: Hi.", "assistant: Ho.", "user: Hi."])
    assert names(transcript)[:2] == names(first)
    assert len(set(names(transcript))) == 3
    assert reading.skipped == {"turn_ended line": 1}


def test_calls_results_and_unknown_blocks_with_text_are_kept(tmp_path: Path) -> None:
    lines = (
        line("assistant", {"type": "thinking", "thinking": "Hm."}, {"type": "tool_use", "name": "Bash", "input": {}}),
        line(
            "assistant",
            {"type": "tool_call", "name": "read_file", "input": {"path": "a"}},
            {"type": "new", "text": "x"},
        ),
        line("user", {"type": "tool_result", "tool_use_id": "t1", "content": "a.txt"}),
        line("user", {"type": "tool-result", "name": "read_file", "content": [text("b")]}),
    )
    transcript = only(read_transcript(written(tmp_path / "t1.jsonl", *lines)))
    assert shown(transcript) == [
        "assistant: [thinking] + Bash({})",
        'assistant: read_file({"path": "a"}) + x',
        "user: got a.txt",
        f"user: got {[text('b')]}",
    ]


def test_messages_without_a_time_get_that_of_the_files_last_change(tmp_path: Path) -> None:
    path = written(tmp_path / "t1.jsonl", line("user", text("Hi.")), line("assistant", text("Ho.")))
    moment = datetime(2025, 5, 1, 10, tzinfo=UTC)
    os.utime(path, (0, moment.timestamp()))
    assert [entry.sent_at for entry in only(read_transcript(path)).entries] == [moment, moment]
    timed = line("user", text("When?")) | {"timestamp": "2025-04-01T09:00:00Z"}
    written(path, line("user", text("Hi.")), timed, line("assistant", text("Now.")))
    assert {entry.sent_at for entry in only(read_transcript(path)).entries} == {datetime(2025, 4, 1, 9, tzinfo=UTC)}


def test_reasoning_becomes_a_thinking_block(tmp_path: Path) -> None:
    lines = (line("assistant", {"type": "reasoning", "text": "Hm."}, text("Yes.")),)
    assert shown(only(read_transcript(written(tmp_path / "t1.jsonl", *lines)))) == ["assistant: [thinking] + Yes."]


def test_tool_messages_become_results(tmp_path: Path) -> None:
    result = {"type": "tool-result", "toolCallId": "t1", "result": "a.txt"}
    lines = (line("tool", text("ok")), line("tool", result), {"role": "tool", "content": "done"})
    assert shown(only(read_transcript(written(tmp_path / "t1.jsonl", *lines)))) == [
        "user: got ok",
        "user: got a.txt",
        "user: got done",
    ]


def test_a_sub_agent_is_a_session_of_its_own_without_the_user(tmp_path: Path) -> None:
    folder = tmp_path / "t1"
    written(folder / "t1.jsonl", line("user", text("Send somebody.")))
    kid = written(folder / "subagents" / "kid.jsonl", line("user", text("List.")), line("assistant", text("a.txt")))
    transcript = only(read_transcript(kid))
    assert (transcript.external_id, shown(transcript)) == ("t1/agent-kid", ["assistant: List.", "assistant: a.txt"])


def test_the_directory_is_found_by_its_dashed_name_where_it_exists(tmp_path: Path) -> None:
    project = tmp_path / "my-work" / "shop.v2"
    project.mkdir(parents=True)
    (tmp_path / "my").mkdir()
    dashed = str(project).strip("/").replace("/", "-").replace(".", "-").replace("_", "-")
    path = written(tmp_path / "c" / dashed / "agent-transcripts" / "t1" / "t1.jsonl", line("user", text("Hi.")))
    assert (only(read_transcript(path)).cwd, only(read_transcript(path)).project) == (str(project), "shop.v2")
    gone = written(
        tmp_path / "c" / "no-such-place" / "agent-transcripts" / "t1" / "t1.jsonl", line("user", text("Hi."))
    )
    assert only(read_transcript(gone)).cwd is None
