"""The reader of pi: the branch that leads to the last line, and linear files of early versions."""

from pathlib import Path
from typing import Any

from esker.server.agents.pi import read_transcript
from tests.support.transcripts import names, only, shown, written

AT = "2026-03-02T09:00:00.000Z"
HEADER = {"type": "session", "version": 3, "id": "p1", "timestamp": AT, "cwd": "/work/shop"}


def said(name: str | None, parent: str | None, role: str, content: Any, **more: Any) -> dict[str, Any]:
    """Return a message line; without an id it is one of an early version."""
    line = {"type": "message", "timestamp": AT, "message": {"role": role, "content": content, **more}}
    return line if name is None else line | {"id": name, "parentId": parent}


def text(words: str) -> list[dict[str, Any]]:
    """Return content of one text."""
    return [{"type": "text", "text": words}]


CALL = {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls"}}


def session(tmp_path: Path, *lines: Any) -> Path:
    """Write a session."""
    return written(tmp_path / "2026-03-02T09-00-00_p1.jsonl", HEADER, *lines)


def forked(name: str, parent: str, at: str) -> dict[str, Any]:
    """Return the header of a session that was forked from another one."""
    path = f"/home/me/.pi/agent/sessions/--work--/2026-03-02T09-00-00-000Z_{parent}.jsonl"
    return {"type": "session", "version": 3, "id": name, "timestamp": at, "cwd": "/work", "parentSession": path}


def test_a_line_that_a_fork_copied_belongs_to_the_session_it_was_copied_from(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {
            "type": "message",
            "id": name,
            "parentId": parent,
            "timestamp": at,
            "message": {"role": "user", "content": said},
        }
        for name, parent, at, said in (
            ("a1", None, "2026-03-02T09:00:01Z", "Width is 58."),
            ("b1", "a1", "2026-03-09T09:00:01Z", "Add a logo."),
        )
    ]
    path = written(tmp_path / "2026-03-09_kid.jsonl", forked("kid", "root", "2026-03-09T09:00:00Z"), *lines)
    reading = read_transcript(path)
    assert {each.external_id: shown(each) for each in reading.transcripts} == {
        "root": ["user: Width is 58."],
        "kid": ["user: Add a logo."],
    }
    alone = forked("kid", "root", "2026-03-02T09:00:00Z")
    assert only(read_transcript(written(tmp_path / "x.jsonl", alone, *lines))).external_id == "kid"


def test_the_branch_that_leads_to_the_last_line_is_the_session(tmp_path: Path) -> None:
    lines = (
        said("a", None, "user", text("One.")),
        said("b", "a", "assistant", text("Two.")),
        said("c", "b", "user", text("Wrong.")),
        said("d", "c", "assistant", text("Oh.")),
        {"type": "branch_summary", "id": "e", "parentId": "b", "timestamp": AT, "summary": "They went wrong."},
        said("f", "e", "user", text("Right.")),
    )
    reading = read_transcript(session(tmp_path, *lines))
    transcript = only(reading)
    assert shown(transcript) == ["user: One.", "assistant: Two.", "user: Right."]
    assert names(transcript) == ["a", "b", "f"]
    assert (transcript.external_id, transcript.cwd) == ("p1", "/work/shop")
    assert reading.skipped == {"session line": 1, "line of an abandoned branch": 2, "branch summary": 1}


def test_going_back_to_the_beginning_abandons_everything(tmp_path: Path) -> None:
    lines = (said("a", None, "user", text("One.")), said("b", None, "user", text("Anew.")))
    assert shown(only(read_transcript(session(tmp_path, *lines)))) == ["user: Anew."]


def test_only_the_summary_of_a_compaction_is_skipped(tmp_path: Path) -> None:
    lines = (
        said("a", None, "user", text("One.")),
        {"type": "compaction", "id": "b", "parentId": "a", "summary": "One.", "firstKeptEntryId": "a"},
        said("c", "b", "assistant", text("Two.")),
        {"type": "custom_message", "id": "d", "parentId": "c", "content": "From an extension.", "display": True},
    )
    reading = read_transcript(session(tmp_path, *lines))
    assert shown(only(reading)) == ["user: One.", "assistant: Two."]
    assert (reading.skipped["compaction summary"], reading.skipped["custom_message line"]) == (1, 1)


def test_a_broken_line_does_not_cut_the_branch(tmp_path: Path) -> None:
    lines = (
        said("a", None, "user", text("One.")),
        b'{"type": "message", "id": "b',
        said("c", "b", "user", text("Two.")),
    )
    reading = read_transcript(session(tmp_path, *lines))
    assert (shown(only(reading)), reading.broken) == (["user: One.", "user: Two."], [3])


def test_a_cycle_of_parents_ends(tmp_path: Path) -> None:
    lines = (
        said("a", "b", "user", text("One.")),
        said("b", "a", "user", text("Two.")),
        said("c", "c", "user", "Three."),
    )
    assert shown(only(read_transcript(session(tmp_path, *lines)))) == ["user: One.", "user: Two.", "user: Three."]


def test_tools_images_and_commands_of_the_user_are_kept(tmp_path: Path) -> None:
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    lines = (
        said("a", None, "user", [*text("Look."), image]),
        said("b", "a", "assistant", [{"type": "thinking", "thinking": "Hm."}, *text("I look."), CALL]),
        said("c", "b", "toolResult", text("a.txt"), toolCallId="c1", toolName="bash", isError=False),
        said("d", "c", "toolResult", [*text("x"), image], toolCallId="c2", isError=True),
        said("e", "d", "bashExecution", None, command="make", output="no rule", exitCode=2),
        said("f", "e", "assistant", [], stopReason="error", errorMessage="overloaded"),
    )
    reading = read_transcript(session(tmp_path, *lines))
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    assert shown(only(reading)) == [
        "user: Look. + [image]",
        'assistant: [thinking] + I look. + bash({"command": "ls"})',
        "user: got a.txt",
        f"user: failed {[*text('x'), {'type': 'image', 'source': source}]}",
        'assistant: bash({"command": "make"})',
        "user: failed no rule",
    ]
    assert reading.skipped["API error"] == 1


def test_early_versions_are_read_line_by_line_with_stable_ids(tmp_path: Path) -> None:
    lines = [said(None, None, "user", text("One.")), said(None, None, "assistant", text("Two."))]
    first = only(read_transcript(session(tmp_path, *lines)))
    longer = only(read_transcript(session(tmp_path, *lines, said(None, None, "user", text("One.")))))
    assert shown(longer) == ["user: One.", "assistant: Two.", "user: One."]
    assert longer.entries[:2] == first.entries
    assert len(set(names(longer))) == 3
